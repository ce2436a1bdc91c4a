#include "heddle/device_split.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>

#include "devices/cost_model.hpp"

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
};

}  // namespace

struct SplitState {
    explicit SplitState(DeviceRuntime& of)
        : runtime(of), us_per_item(of.devices().size()), refused(us_per_item.size()) {}

    /// Small parts for those whose speed is unknown; what is left of the items.
    Items try_unknown(Items items, const DeviceSplit::Part& part, std::vector<TaskPointer>& done,
                      std::deque<Items>& again);
    /// In proportion to their speeds.
    [[nodiscard]] std::vector<Share> share_out(Items items) const;
    /// Runs them, and notes what they took.
    void run(std::vector<Share> shares, const DeviceSplit::Part& part, bool learn,
             std::vector<TaskPointer>& done, std::deque<Items>& again);
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

void SplitState::run(std::vector<Share> shares, const DeviceSplit::Part& part, bool learn,
                     std::vector<TaskPointer>& done, std::deque<Items>& again) {
    std::vector<TaskPointer> batch;
    for (Share& share : shares) {
        share.task = part(share.items.first, share.items.count);
        if (share.task == nullptr || !share.task->runs_on(*share.device)) {
            share.task = nullptr;
            refused[share.device->index()] = true;
            continue;
        }
        share.task->only_on(*share.device);
        batch.push_back(share.task);
    }
    runtime.submit(batch);
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
            else
                again.push_back(share.items);
            continue;
        }
        const TaskTimes times = share.task->times();
        const double us = times.ended_us - times.started_us;
        if (learn && us > 0)
            us_per_item[share.device->index()].add(us / static_cast<double>(share.items.count));
        done.push_back(share.task);
    }
    if (failure != nullptr) std::rethrow_exception(failure);
}

Items SplitState::try_unknown(Items items, const DeviceSplit::Part& part, std::vector<TaskPointer>& done,
                              std::deque<Items>& again) {
    constexpr size_t kPartsOfAll = 32;
    const std::vector<const Device*> devices = usable();
    const size_t small = std::max<size_t>(items.count / (kPartsOfAll * devices.size()), 1);
    for (const bool learn : {false, true}) {
        std::vector<Share> shares;
        for (const Device* const device : devices) {
            if (us_per_item[device->index()].median() || items.count == 0) continue;
            const size_t count = std::min(small, items.count);
            shares.push_back({device, {items.first, count}, nullptr});
            items = {items.first + count, items.count - count};
        }
        if (!shares.empty()) run(std::move(shares), part, learn, done, again);
    }
    return items;
}

std::vector<Share> SplitState::share_out(Items items) const {
    std::vector<Share> shares;
    double all = 0;
    for (const Device* const device : usable())
        if (const std::optional<double> us = us_per_item[device->index()].median()) all += 1 / *us;
    double before = 0;
    size_t given = 0;
    for (const Device* const device : usable()) {
        const std::optional<double> us = us_per_item[device->index()].median();
        if (!us) continue;
        before += 1 / *us;
        const auto until =
            static_cast<size_t>(std::llround(static_cast<double>(items.count) * std::min(before / all, 1.0)));
        if (until > given) shares.push_back({device, {items.first + given, until - given}, nullptr});
        given = std::max(given, until);
    }
    return shares;
}

DeviceSplit::DeviceSplit(DeviceRuntime& runtime) : state_(std::make_unique<SplitState>(runtime)) {}
DeviceSplit::~DeviceSplit() = default;

std::vector<TaskPointer> DeviceSplit::run(size_t items, const Part& part) {
    const std::lock_guard guard(state_->mutex);
    std::fill(state_->refused.begin(), state_->refused.end(), false);
    std::vector<TaskPointer> done;
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
        left.insert(left.end(), again.begin(), again.end());
    }
    return done;
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
