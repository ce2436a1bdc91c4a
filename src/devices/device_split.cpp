#include "heddle/device_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <mutex>

#include "devices/buffer_state.hpp"
#include "devices/cost_model.hpp"
#include "devices/task_state.hpp"

namespace heddle::devices {
namespace {

struct Items {
    size_t first = 0;
    size_t count = 0;
};

struct Share {
    const Device* device;
    Items items;
    TaskPointer task;
    std::vector<Access> writes;
};

void note_writes(Share& share) {
    TaskState::of(*share.task).visit_accesses([&](const Access& access) {
        if (access.mode != AccessMode::kIn) share.writes.push_back(access);
    });
}

Error lost_items(const Share& share, const std::string& why) {
    return Error(ErrorCode::kUnavailable, fmt::format("items {} to {} are lost: {}", share.items.first,
                                                      share.items.first + share.items.count, why));
}

/// Devices that died after they had done a part may have taken its results along. It is done again, unless it
/// would change once more what it has changed.
void take_lost(std::vector<Share>& done, std::deque<Items>& again) {
    std::erase_if(done, [&](const Share& share) {
        const auto is_lost = [](const Access& one) {
            return BufferState::of(*one.buffer).is_lost(one.range);
        };
        const auto changes = [](const Access& one) { return one.mode == AccessMode::kInOut; };
        if (share.device->alive() || std::ranges::none_of(share.writes, is_lost)) return false;
        if (std::ranges::any_of(share.writes, changes))
            throw lost_items(share, fmt::format("only {}, which failed, had what was made of them",
                                                share.device->info().name));
        again.push_back(share.items);
        return true;
    });
}

}  // namespace

struct SplitState {
    explicit SplitState(DeviceRuntime& of)
        : runtime(of), us_per_item(of.devices().size()), refused(us_per_item.size()) {}

    /// Small parts for those whose speed is unknown; what is left of the items.
    Items try_unknown(Items items, const DeviceSplit::Part& part, std::vector<Share>& done,
                      std::deque<Items>& again);
    /// In proportion to their speeds.
    [[nodiscard]] std::vector<Share> share_out(Items items) const;
    /// Runs them, and notes what they took.
    void run(std::vector<Share> shares, const DeviceSplit::Part& part, bool learn, std::vector<Share>& done,
             std::deque<Items>& again);
    void submit_those_that_live(std::vector<Share>& shares, std::vector<TaskPointer>& batch);
    [[nodiscard]] std::vector<const Device*> usable() const;

    DeviceRuntime& runtime;
    mutable std::mutex mutex;
    std::vector<RunTimes> us_per_item;  // by device
    std::vector<char> refused;          // by device: it does not run the parts of this run
};

std::vector<const Device*> SplitState::usable() const {
    std::vector<const Device*> devices;
    for (const Device& device : runtime.devices())
        if (device.alive() && !refused[device.index()]) devices.push_back(&device);
    return devices;
}

/// One may have died since it was asked.
void SplitState::submit_those_that_live(std::vector<Share>& shares, std::vector<TaskPointer>& batch) {
    while (!batch.empty()) {
        try {
            return runtime.submit(batch);
        } catch (const Error& error) {
            const size_t before = batch.size();
            for (Share& share : shares)
                if (share.task != nullptr && !share.device->alive())
                    std::erase(batch, std::exchange(share.task, nullptr));
            if (error.code() != ErrorCode::kUnavailable || batch.size() == before) throw;
        }
    }
}

void SplitState::run(std::vector<Share> shares, const DeviceSplit::Part& part, bool learn,
                     std::vector<Share>& done, std::deque<Items>& again) {
    std::vector<TaskPointer> batch;
    for (Share& share : shares) {
        share.task = part(share.items.first, share.items.count);
        if (share.task == nullptr)
            throw Error(
                ErrorCode::kInvalidArgument,
                fmt::format("there is no task for items {} to {}: the function of a split makes one for "
                            "each part",
                            share.items.first, share.items.first + share.items.count));
        if (!share.task->runs_on(*share.device)) {
            share.task = nullptr;
            refused[share.device->index()] = true;
            continue;
        }
        share.task->only_on(*share.device);
        TaskState::of(*share.task).only_wait_tells = true;  // a part that is lost is done again
        note_writes(share);
        batch.push_back(share.task);
    }
    submit_those_that_live(shares, batch);
    std::exception_ptr failure;
    for (const Share& share : shares) {
        if (share.task == nullptr) {
            again.push_back(share.items);
            continue;
        }
        try {
            share.task->wait();
        } catch (...) {
            if (share.device->alive())
                failure = std::current_exception();
            else if (TaskState::of(*share.task).changed_in_place)
                failure = std::make_exception_ptr(lost_items(
                    share,
                    fmt::format("{} has failed and had changed a part of them", share.device->info().name)));
            else
                again.push_back(share.items);
            continue;
        }
        const TaskTimes times = share.task->times();
        const double us = times.ended_us - times.started_us;
        if (learn && us > 0)
            us_per_item[share.device->index()].add(us / static_cast<double>(share.items.count));
        done.push_back(share);
    }
    if (failure != nullptr) std::rethrow_exception(failure);
}

Items SplitState::try_unknown(Items items, const DeviceSplit::Part& part, std::vector<Share>& done,
                              std::deque<Items>& again) {
    constexpr size_t kPartsOfAll = 32;
    const std::vector<const Device*> devices = usable();
    const size_t small = std::max<size_t>(items.count / (kPartsOfAll * devices.size()), 1);
    for (const bool learn : {false, true}) {
        std::vector<Share> shares;
        for (const Device* const device : devices) {
            if (us_per_item[device->index()].median() || items.count == 0) continue;
            const size_t count = std::min(small, items.count);
            shares.push_back({device, {items.first, count}, nullptr, {}});
            items = {items.first + count, items.count - count};
        }
        if (!shares.empty()) run(std::move(shares), part, learn, done, again);
    }
    return items;
}

std::vector<Share> SplitState::share_out(Items items) const {
    std::vector<Share> shares;
    const std::vector<const Device*> devices = usable();
    double all = 0;
    for (const Device* const device : devices)
        if (const std::optional<double> us = us_per_item[device->index()].median()) all += 1 / *us;
    // Parts of few sizes: drivers choose groups that divide them, and PoCL compiles a kernel for each group
    // anew.
    constexpr size_t kGrains = 16;
    const size_t grain = std::bit_floor(std::max<size_t>(items.count / (kGrains * (devices.size() + 1)), 1));
    double before = 0;
    size_t given = 0;
    for (const Device* const device : devices) {
        const std::optional<double> us = us_per_item[device->index()].median();
        if (!us) continue;
        before += 1 / *us;
        const bool is_last = before > all * (1 - 1e-9);
        const double grains = static_cast<double>(items.count) * before / all / static_cast<double>(grain);
        const size_t until =
            is_last ? items.count : std::min(grain * static_cast<size_t>(std::llround(grains)), items.count);
        if (until > given) shares.push_back({device, {items.first + given, until - given}, nullptr, {}});
        given = std::max(given, until);
    }
    return shares;
}

DeviceSplit::DeviceSplit(DeviceRuntime& runtime) : state_(std::make_unique<SplitState>(runtime)) {}
DeviceSplit::~DeviceSplit() = default;

std::vector<TaskPointer> DeviceSplit::run(size_t items, const Part& part) {
    if (part == nullptr)
        throw Error(ErrorCode::kInvalidArgument,
                    "a kernel is to be split by a function that makes its parts, and "
                    "that is empty");
    const std::lock_guard guard(state_->mutex);
    std::fill(state_->refused.begin(), state_->refused.end(), false);
    std::vector<Share> done;
    std::deque<Items> left{{0, items}};
    while (!left.empty()) {
        Items next = left.front();
        left.pop_front();
        if (next.count == 0) continue;
        if (state_->usable().empty())
            throw Error(ErrorCode::kUnavailable, "no device is left that runs the kernel");
        std::deque<Items> again;
        next = state_->try_unknown(next, part, done, again);
        std::vector<Share> shares = state_->share_out(next);
        // Those that were tried are gone.
        if (shares.empty() && next.count > 0) again.push_back(next);
        state_->run(std::move(shares), part, true, done, again);
        take_lost(done, again);
        left.insert(left.end(), again.begin(), again.end());
    }
    std::vector<TaskPointer> tasks;
    for (const Share& share : done) tasks.push_back(share.task);
    return tasks;
}

std::vector<double> DeviceSplit::speeds() const {
    const std::lock_guard guard(state_->mutex);
    std::vector<double> all;
    for (const RunTimes& times : state_->us_per_item) {
        const std::optional<double> us = times.median();
        all.push_back(us ? 1 / *us : 0);
    }
    return all;
}

}  // namespace heddle::devices
