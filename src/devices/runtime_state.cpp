#include "devices/runtime_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "devices/device_trace.hpp"
#include "devices/kinds/host/host_driver.hpp"
#include "devices/kinds/simulated/simulated_driver.hpp"

namespace heddle::devices {
namespace {

std::atomic<uint64_t> last_number{0};

/// Of the process.
struct SchedulersInUse {
    std::mutex mutex;
    std::set<const Scheduler*> all;
};
SchedulersInUse& schedulers_in_use() {
    static SchedulersInUse& of_process = *new SchedulersInUse;  // runtimes may end after static objects
    return of_process;
}

}  // namespace

TakenScheduler::TakenScheduler(std::shared_ptr<Scheduler> scheduler) : scheduler_(std::move(scheduler)) {
    SchedulersInUse& in_use = schedulers_in_use();
    const std::lock_guard guard(in_use.mutex);
    if (!in_use.all.insert(scheduler_.get()).second)
        throw Error(ErrorCode::kInvalidArgument,
                    "this scheduler is another runtime's already, whose devices it knows: make one for each");
}

TakenScheduler::~TakenScheduler() {
    SchedulersInUse& in_use = schedulers_in_use();
    const std::lock_guard guard(in_use.mutex);
    in_use.all.erase(scheduler_.get());
}

RuntimeState::RuntimeState(const DeviceOptions& options)
    : number_(++last_number),
      scheduler_(options.scheduler != nullptr ? options.scheduler : make_scheduler("fcfs")) {
    std::vector<std::shared_ptr<DeviceDriver>> drivers;
    for (auto kind = options.kinds.begin(); kind != options.kinds.end(); ++kind) {
        if (std::find(options.kinds.begin(), kind, *kind) != kind)
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("the devices of kind \"{}\" are asked for twice", *kind));
        try {
            std::vector<DeviceInfo> unusable;
            for (auto& driver : open_devices(*kind, unusable, options.compute_units))
                drivers.push_back(std::move(driver));
            for (const DeviceInfo& info : unusable) warnings_.push_back(info.reason);
        } catch (const Error& error) {
            if (error.code() == ErrorCode::kInvalidArgument) throw;
            warnings_.emplace_back(error.what());
        }
    }
    for (auto& driver : simulated_drivers(options.simulated)) drivers.push_back(std::move(driver));
    for (auto& driver : host_drivers(options.host_slots)) drivers.push_back(std::move(driver));
    if (drivers.empty())
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("there is no device here{}{}", warnings_.empty() ? "" : "; ",
                                fmt::join(warnings_, "; ")));
    if (options.learn) {
        const bool kept = !options.kinds.empty() || !options.costs_file.empty();
        costs_ = std::make_unique<CostModel>(!kept                        ? ""
                                             : options.costs_file.empty() ? CostModel::default_path()
                                                                          : options.costs_file);
        if (!costs_->problem().empty()) warnings_.push_back(costs_->problem());
    }
    std::map<const void*, std::vector<DeviceState*>> groups;
    for (auto& driver : drivers) {
        devices_.push_back(std::make_unique<DeviceState>(number_, static_cast<unsigned>(devices_.size()),
                                                         std::move(driver)));
        DeviceState& state = *devices_.back();
        if (costs_ != nullptr) {
            const DeviceInfo& info = state.driver->info();
            const bool kept = info.kind != "simulated" || !options.costs_file.empty();
            state.costs = kept ? &costs_->of(info) : &own_costs_.of(info);
        }
        state.driver->trace = DeviceTrace::open(
            fmt::format("device {} {}", state.index, state.driver->info().name), state.driver->now_us());
        handles_.push_back(state.device);
        groups[state.driver->clock()].push_back(&state);
    }
    for (const auto& state : devices_) pointers_.push_back(&state->device);
    try {
        for (auto& [clock, own] : groups) threads_.emplace_back([this, own = own] { work(own); });
    } catch (const std::system_error& error) {
        stop_workers();
        throw Error(ErrorCode::kLimit,
                    fmt::format("{} devices need {} threads, and the system gave {}: {}", devices_.size(),
                                groups.size(), threads_.size(), error.what()));
    }
}

RuntimeState::~RuntimeState() {
    {
        std::unique_lock lock(graph_mutex());
        ++waiting_;
        ended_.wait(lock, [this] { return unfinished_ == 0 && coming_ == 0; });
        --waiting_;
        for (const auto& failure : failures_) failure->told = true;  // nobody will be
    }
    stop_workers();
    for (const auto& device : devices_) device->driver->retired = true;
    if (costs_ != nullptr) costs_->save();
}

void RuntimeState::stop_workers() {
    stopping_ = true;
    wake_workers();
    for (std::thread& thread : threads_) thread.join();
}

void RuntimeState::wake_workers() {
    events_.fetch_add(1);
    events_.notify_all();
}

void RuntimeState::check(const TaskPointer& pointer) const {
    if (pointer == nullptr) throw Error(ErrorCode::kInvalidArgument, "no task was submitted");
    const TaskState& task = TaskState::of(*pointer);
    if (task.status != TaskStatus::kBuilt)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("task \"{}\" {}", task.shown_name(),
                                task.runtime == nullptr ? "is twice in one batch" : "was submitted before"));
    if (TaskState::of(*task.program).runtime != number_)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the program of task \"{}\" is another runtime's", task.shown_name()));
    if (task.kernels.empty())
        throw Error(ErrorCode::kInvalidArgument, fmt::format("task \"{}\" has no kernel", task.name));
    std::string reasons;
    for (const auto& device : devices_) {
        const std::string why_not = task.refusal(*device);
        if (why_not.empty()) return;
        reasons += fmt::format("\n{}: {}", device->driver->info().name, why_not);
    }
    throw Error(ErrorCode::kUnavailable,
                fmt::format("no device can run task \"{}\":{}", task.shown_name(), reasons));
}

void RuntimeState::submit(std::span<const TaskPointer> batch) {
    Tasks fresh, left, stranded;
    std::vector<std::pair<std::shared_ptr<TaskState>, std::exception_ptr>> in_vain;
    fresh.reserve(batch.size());
    in_vain.reserve(batch.size());
    {
        const std::lock_guard guard(graph_mutex());
        try {
            for (const TaskPointer& pointer : batch) {
                check(pointer);
                fresh.push_back(TaskState::of(*pointer).shared_from_this());
                fresh.back()->status = TaskStatus::kWaiting;
            }
        } catch (...) {
            for (const auto& task : fresh) task->status = TaskStatus::kBuilt;
            throw;
        }
        for (size_t i = 0; i < batch.size(); ++i) {
            TaskState& task = *fresh[i];
            task.runtime = this;
            task.handle = batch[i];
            task.live = live_.insert(live_.end(), fresh[i]);
            ++unfinished_;
            task.runs_alone = task.configure != nullptr && task.configure_adds_data;
            task.sign(devices_);
            task.enter_graph();
            if (task.failure != nullptr) in_vain.emplace_back(fresh[i], task.failure->why);
            ++task.waits_for;  // until the scheduler knows it
        }
    }
    try {
        scheduler_->submitted(batch, pointers_);
    } catch (...) {
        for (const auto& task : fresh) abandon(task, TaskStatus::kFailed, std::current_exception());
    }
    for (const auto& [task, why] : in_vain) abandon(task, TaskStatus::kFailed, why);
    std::vector<TaskPointer> ready;
    std::vector<std::function<void()>> told;
    {
        const std::lock_guard guard(graph_mutex());
        ready = let_go(fresh, left, stranded);
        for (const auto& task : fresh)
            if (task->may_go_ahead())
                devices_[static_cast<size_t>(task->sole_device)]->followers.push_back(task);
        told = count_out(left);
    }
    tell(told);
    // The scheduler may have been told so before it knew them.
    for (const TaskPointer& task : batch)
        if (TaskState::of(*task).withdrawn()) scheduler_->dropped(task);
    hand_over(ready);
    withdraw(std::move(stranded));
}

std::vector<TaskPointer> RuntimeState::let_go(std::span<const std::shared_ptr<TaskState>> held, Tasks& left,
                                              Tasks& stranded) {
    Tasks ready;
    for (const auto& task : held) task->let_go(ready, left);
    stranded = settle_stranded(ready);
    for (const auto& task : ready)
        if (task->runtime != this) ++task->runtime->coming_;
    return handles_of(ready);
}

Tasks RuntimeState::settle_stranded(Tasks& ready) {
    Tasks settled;
    std::erase_if(ready, [&](const std::shared_ptr<TaskState>& task) {
        const RuntimeState& its = *task->runtime;
        if (!its.lost_device_ || its.runs_anywhere(*task)) return false;
        std::exception_ptr why;
        for (const auto& device : its.devices_)
            if (device->loss != nullptr && task->suits(*device)) why = device->loss;
        task->settle(TaskStatus::kFailed, why == nullptr ? why : task->named(why), settled);
        return true;
    });
    return settled;
}

std::vector<TaskPointer> RuntimeState::handles_of(const Tasks& tasks) {
    std::vector<TaskPointer> handles;
    handles.reserve(tasks.size());
    for (const auto& task : tasks) handles.push_back(task->handle);
    return handles;
}

void RuntimeState::hand_over(const std::vector<TaskPointer>& ready) {
    if (ready.empty()) return;
    const auto is_own = [&](const TaskPointer& task) { return TaskState::of(*task).runtime == this; };
    if (std::ranges::all_of(ready, is_own)) return schedule(ready);
    std::map<RuntimeState*, std::vector<TaskPointer>> by_runtime;
    for (const TaskPointer& task : ready) by_runtime[TaskState::of(*task).runtime].push_back(task);
    for (const auto& [runtime, tasks] : by_runtime) {
        runtime->schedule(tasks);
        if (runtime == this) continue;
        const std::lock_guard guard(graph_mutex());
        runtime->coming_ -= tasks.size();
        runtime->ended_.notify_all();
    }
}

void RuntimeState::schedule(const std::vector<TaskPointer>& ready) {
    std::vector<std::pair<TaskPointer, std::exception_ptr>> refused;
    {
        const std::lock_guard guard(handing_over_);
        for (const TaskPointer& task : ready) {
            try {
                scheduler_->push(task);
            } catch (...) {
                refused.emplace_back(task, std::current_exception());
            }
            // It may have been told so before it had it.
            if (TaskState::of(*task).withdrawn()) scheduler_->dropped(task);
        }
        wake_workers();
    }
    for (const auto& [task, why] : refused)
        abandon(TaskState::of(*task).shared_from_this(), TaskStatus::kFailed, why);
}

TaskPointer RuntimeState::pop(const DeviceState& device, Pass& pass) {
    const std::lock_guard guard(handing_over_);
    pass.outdated = pass.outdated || events_ != pass.events;
    if (pass.outdated) return nullptr;
    while (TaskPointer task = scheduler_->pop(device.device)) {
        // What a scheduler gives once more is not looked at.
        int nobody = -1;
        if (TaskState::of(*task).taken_by.compare_exchange_strong(nobody, static_cast<int>(device.index)))
            return task;
    }
    return nullptr;
}

std::vector<std::function<void()>> RuntimeState::count_out(
    std::span<const std::shared_ptr<TaskState>> ended) {
    std::vector<std::function<void()>> told;
    for (const auto& task : ended) {
        RuntimeState& its = *task->runtime;
        if (task->failure != nullptr && !task->only_wait_tells) its.failed(task->failure);
        its.live_.erase(task->live);
        task->handle = nullptr;
        if (task->told) told.push_back(std::exchange(task->told, nullptr));
        --its.unfinished_;
        if (task->waited_for > 0 || (its.waiting_ > 0 && its.unfinished_ == 0)) its.ended_.notify_all();
    }
    return told;
}

void RuntimeState::failed(const std::shared_ptr<Failure>& failure) {
    if (!failures_.empty() && failures_.back() == failure) return;
    if (failures_.size() == failures_.capacity() && !failures_.empty()) {
        // finish() throws the first; of the others those count that nobody was told of.
        failures_.erase(
            std::remove_if(failures_.begin() + 1, failures_.end(), [](const auto& one) { return one->told; }),
            failures_.end());
        failures_.reserve(2 * failures_.size() + 1);
    }
    failures_.push_back(failure);
}

void RuntimeState::tell(const std::vector<std::function<void()>>& told) {
    for (const auto& one : told) one();
}

void RuntimeState::complete(std::span<const std::shared_ptr<TaskState>> tasks) {
    if (tasks.empty()) return;
    for (const auto& task : tasks) task->forget();
    Tasks settled, left, stranded;
    settled.reserve(tasks.size());
    std::vector<TaskPointer> ready;
    std::vector<std::function<void()>> told;
    {
        const std::lock_guard guard(graph_mutex());
        for (const auto& task : tasks) task->settle(TaskStatus::kDone, nullptr, settled);
        ready = let_go(settled, left, stranded);
        told = count_out(left);
    }
    tell(told);
    hand_over(ready);
    withdraw(std::move(stranded));
}

bool RuntimeState::abandon(const std::shared_ptr<TaskState>& task, TaskStatus how,
                           const std::exception_ptr& why, bool only_unbegun) {
    Tasks settled;
    {
        const std::lock_guard guard(graph_mutex());
        if (TaskState::ended(task->status) || (only_unbegun && task->status == TaskStatus::kRunning))
            return false;
        task->settle(how, why, settled);
    }
    withdraw(std::move(settled));
    return true;
}

void RuntimeState::withdraw(Tasks settled) {
    if (settled.empty()) return;
    Tasks left, stranded;
    while (!settled.empty()) {
        for (const auto& one : settled) {
            one->runtime->scheduler_->dropped(one->handle);
            one->forget();
        }
        std::vector<TaskPointer> ready;
        {
            const std::lock_guard guard(graph_mutex());
            ready = let_go(settled, left, stranded);
        }
        hand_over(ready);
        settled = std::move(stranded);
    }
    std::vector<std::function<void()>> told;
    {
        const std::lock_guard guard(graph_mutex());
        told = count_out(left);
    }
    tell(told);
}

void RuntimeState::refuse_in_callback(const TaskState* awaited) const {
    const TaskState* const task = task_in_callback();
    if (task == nullptr || task->runtime != this) return;
    const std::string what =
        awaited == nullptr ? "all tasks of its runtime" : fmt::format("task \"{}\"", awaited->shown_name());
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("a callback of task \"{}\" cannot wait for {}, which may need its device: submit a "
                    "task that uses the same buffers",
                    task->shown_name(), what));
}

void RuntimeState::finish() {
    refuse_in_callback(nullptr);
    std::unique_lock lock(graph_mutex());
    ++waiting_;
    ended_.wait(lock, [this] { return unfinished_ == 0; });
    --waiting_;
    if (failures_.empty()) return;
    const std::exception_ptr first = failures_.front()->why;
    for (const auto& failure : std::exchange(failures_, {})) failure->told = true;
    std::rethrow_exception(first);
}

void RuntimeState::wait(TaskState& task) {
    std::unique_lock lock(graph_mutex());
    const auto has_ended = [&] { return TaskState::ended(task.status) && task.handle == nullptr; };
    if (!has_ended()) refuse_in_callback(&task);
    ++task.waited_for;
    ended_.wait(lock, has_ended);
    --task.waited_for;
}

bool RuntimeState::cancel(TaskState& task) {
    return abandon(task.shared_from_this(), TaskStatus::kCancelled, nullptr, true);
}

}  // namespace heddle::devices
