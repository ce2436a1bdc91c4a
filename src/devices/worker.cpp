// What a worker of a runtime does: it takes tasks for its devices, keeps each of them supplied, ends what
// they have done, and deals with a device that fails.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "devices/buffer_state.hpp"
#include "devices/device_trace.hpp"
#include "devices/runtime_state.hpp"

namespace heddle::devices {
namespace {

thread_local const TaskState* in_callback = nullptr;
thread_local bool is_worker = false;

class CallbackScope {
  public:
    explicit CallbackScope(const TaskState& task) { in_callback = &task; }
    ~CallbackScope() { in_callback = nullptr; }
    CallbackScope(const CallbackScope&) = delete;
    CallbackScope& operator=(const CallbackScope&) = delete;
};

/// Whether the device that did this is lost; not where it lacks what another one had.
bool lost_by(const std::exception_ptr& why) {
    try {
        std::rethrow_exception(why);
    } catch (const SourceError&) {
        return false;
    } catch (const DeviceError& error) {
        return error.lost();
    } catch (...) {
        return false;
    }
}

}  // namespace

const TaskState* task_in_callback() noexcept {
    return in_callback;
}

/// It is to have work behind what it does now, where all that is measured and short: so much, by estimates,
/// and so many tasks. What it has another device cannot take.
static bool may_look_ahead(const DeviceState& device) {
    constexpr double kLookAheadUs = 400;
    constexpr size_t kMostInFlight = 128;
    if (device.in_flight.back().task->runs_alone) return false;
    return device.driver->looks_ahead() && device.knows_its_work && device.in_flight.size() < kMostInFlight &&
           device.free_at_us - device.in_flight.front().begun_us < kLookAheadUs;
}

bool RuntimeState::in_worker() noexcept {
    return is_worker;
}

void RuntimeState::work(std::span<DeviceState* const> own) {
    is_worker = true;
    while (true) {
        Pass pass{events_};
        bool begun = false;
        for (DeviceState* const device : own) begun |= begin_some(*device, pass);
        if (begun) continue;
        for (DeviceState* const device : own) prefetch(*device, pass);
        if (pass.outdated) continue;
        DeviceState* next = nullptr;
        for (DeviceState* const device : own) {
            if (device->in_flight.empty()) continue;
            if (next == nullptr || device->driver->passes_at_us(device->in_flight.front().mark) <
                                       next->driver->passes_at_us(next->in_flight.front().mark))
                next = device;
        }
        if (next != nullptr) {
            end_oldest(*next);
        } else {
            if (stopping_) return;
            events_.wait(pass.events);
        }
    }
}

bool RuntimeState::begin_some(DeviceState& device, Pass& pass) {
    std::deque<InFlight>& flights = device.in_flight;
    const size_t first = flights.size();
    if (first == 0) device.free_at_us = device.driver->now_us();
    pop_some(device, pass);
    if (flights.empty() && !pass.outdated && reconsider_for(device)) {
        Pass again{events_};
        pop_some(device, again);
        pass.outdated = true;  // the others have not been asked since
    }
    if (flights.size() == first) return false;
    Tasks too_early;
    {
        const std::lock_guard guard(graph_mutex());
        const auto is_not_to_begin = [&](const InFlight& flight) {
            if (flight.task->status == TaskStatus::kWaiting) too_early.push_back(flight.task);
            return flight.task->status != TaskStatus::kReady;
        };
        const auto fresh = flights.begin() + static_cast<ptrdiff_t>(first);
        flights.erase(std::remove_if(fresh, flights.end(), is_not_to_begin), flights.end());
        for (size_t i = first; i < flights.size(); ++i) {
            TaskState& task = *flights[i].task;
            task.status = TaskStatus::kRunning;
            task.times.started_us = flights[i].begun_us;
            task.ran_on = static_cast<int>(device.index);
            if (task.is_ahead) {
                flights[i].coming = task.coming();
                for (const auto& before : task.predecessors) flights[i].behind.push_back(before.lock().get());
            }
            if (device.driver->looks_ahead()) task.enter_flight(device.followers);
        }
    }
    for (const auto& task : too_early)
        abandon(task, TaskStatus::kFailed,
                std::make_exception_ptr(
                    Error(ErrorCode::kInvalidArgument,
                          fmt::format("the scheduler has given task \"{}\" before it was pushed",
                                      task->shown_name()))));
    for (size_t at = first; at < flights.size();) {
        const std::shared_ptr<TaskState> task = flights[at].task;
        try {
            const CallbackScope scope(*task);
            for (size_t i = 0; i < at && !flights[at].behind.empty(); ++i)
                if (std::ranges::find(flights[at].behind, flights[i].task.get()) != flights[at].behind.end())
                    device.driver->follow(flights[i].mark);
            task->launch(device, std::move(flights[at].coming));
            flights[at].mark = device.driver->mark();
            ++at;
        } catch (...) {
            if (fails_later(flights[at], device, std::current_exception())) {
                ++at;
                continue;
            }
            flights.erase(flights.begin() + static_cast<ptrdiff_t>(at));
            repeat_or_fail(device, task, std::current_exception());
        }
    }
    return true;
}

/// Where copies or kernels of it are on their way, the task fails when those have ended: its caller may free
/// their memory then.
bool RuntimeState::fails_later(InFlight& flight, DeviceState& device, std::exception_ptr why) {
    if (!flight.task->has_begun() || lost_by(why)) return false;
    try {
        flight.mark = device.driver->mark();
        flight.failure = std::move(why);
        return true;
    } catch (const Error&) {
        return false;
    }
}

/// Few: so that the device has begun with the first of them soon.
void RuntimeState::pop_some(DeviceState& device, Pass& pass) {
    constexpr int kAtOnce = 8;
    for (int i = 0; i < kAtOnce; ++i) {
        const bool was_idle = device.in_flight.empty();
        if (device.driver->dead || (!was_idle && !may_look_ahead(device))) return;
        device.busy = !was_idle;
        std::shared_ptr<TaskState> task = device.take_next();
        const bool is_counted = task != nullptr && !was_idle;
        if (task == nullptr) {
            const TaskPointer handle = pop(device, pass);
            task = handle == nullptr ? take_follower(device) : TaskState::of(*handle).shared_from_this();
            if (task == nullptr) return;
        }
        if (!was_idle && task->runs_alone) return begin_later(device, std::move(task), is_counted);
        const double now_us = device.driver->now_us();
        const double sent_us = is_counted ? 0 : task->transfer_us(device);
        if (!is_counted)
            device.free_at_us =
                (was_idle ? now_us : device.free_at_us.load()) + task->estimate_us(device) + sent_us;
        device.knows_its_work = (was_idle || device.knows_its_work) && device.costs != nullptr &&
                                device.costs->estimate_us(task->signature()).has_value();
        device.in_flight.push_back(
            {.task = std::move(task), .begun_us = now_us, .sent_us = was_idle ? sent_us : 0});
    }
}

void RuntimeState::begin_later(DeviceState& device, std::shared_ptr<TaskState> task, bool is_counted) {
    if (!is_counted)
        device.free_at_us = device.free_at_us + task->transfer_us(device) + task->estimate_us(device);
    const std::lock_guard guard(device.next_mutex);
    device.next = std::move(task);
}

void RuntimeState::prefetch(DeviceState& device, Pass& pass) {
    if (device.driver->info().shares_host_memory || device.driver->dead || device.in_flight.empty()) return;
    std::exception_ptr failure;
    {
        const std::lock_guard guard(device.next_mutex);
        if (device.next != nullptr && !TaskState::ended(device.next->status)) return;
        device.busy = true;
        const TaskPointer handle = pop(device, pass);
        device.next = handle == nullptr ? nullptr : TaskState::of(*handle).shared_from_this();
        if (handle == nullptr) return;
        const double there_us = device.driver->now_us() + device.next->transfer_us(device);
        device.free_at_us = std::max(device.free_at_us.load(), there_us) + device.next->estimate_us(device);
        try {
            device.next->prefetch(device);
        } catch (...) {
            failure = std::current_exception();
        }
    }
    // What else it is its launch finds, too.
    if (failure != nullptr && lost_by(failure)) lose(device, failure);
}

std::shared_ptr<TaskState> RuntimeState::take_follower(DeviceState& device) {
    // A driver takes longer for tasks that wait for each other there: with so many in flight it needs no
    // more.
    constexpr size_t kEnough = 12;
    if (device.in_flight.size() >= kEnough) return nullptr;
    TaskPointer handle;
    std::shared_ptr<TaskState> found;
    {
        const std::lock_guard guard(graph_mutex());
        while (found == nullptr && !device.followers.empty()) {
            std::shared_ptr<TaskState> task = std::move(device.followers.front());
            device.followers.pop_front();
            if (!task->may_go_ahead()) continue;
            task->is_ahead = true;
            task->status = TaskStatus::kReady;
            task->taken_by = static_cast<int>(device.index);
            handle = task->handle;
            found = std::move(task);
        }
    }
    if (found != nullptr) scheduler_->dropped(handle);
    return found;
}

bool RuntimeState::left_to_predecessors(const std::shared_ptr<TaskState>& task, bool lost) {
    std::exception_ptr why;
    {
        const std::lock_guard guard(graph_mutex());
        task->leave_flight();
        if (!std::exchange(task->is_ahead, false)) return false;
        if (task->failure != nullptr) {
            why = task->failure->why;
        } else {
            if (!lost || task->waits_for == 0) return false;
            task->status = TaskStatus::kWaiting;
            task->ran_on = -1;
            task->taken_by = -1;
            return true;
        }
    }
    abandon(task, TaskStatus::kFailed, why);
    return true;
}

bool RuntimeState::reconsider_for(const DeviceState& idle) {
    if (idle.driver->dead) return false;
    for (const auto& device : devices_) {
        std::shared_ptr<TaskState> task;
        {
            const std::lock_guard guard(device->next_mutex);
            const auto& next = device->next;
            if (next == nullptr || next->reconsidered || !next->runs_on(idle)) continue;
            task = std::exchange(device->next, nullptr);
            device->free_at_us.fetch_sub(task->estimate_us(*device));
        }
        task->reconsidered = true;
        put_back(task);
        return true;
    }
    return false;
}

void RuntimeState::put_back(const std::shared_ptr<TaskState>& next) {
    std::vector<TaskPointer> ready;
    {
        const std::lock_guard guard(graph_mutex());
        if (next->status == TaskStatus::kReady) ready.push_back(next->handle);
        next->taken_by = -1;
    }
    hand_over(ready);
}

/// Tasks that do the same work end together: half of those that are there, so that the device has the other
/// half while their ends are dealt with, and one that waits for it wakes up once.
static size_t ending_together(const std::deque<InFlight>& flights) {
    const Signature signature = flights.front().task->signature();
    size_t alike = 1;
    while (alike < flights.size() && flights[alike].task->signature() == signature) ++alike;
    return (alike + 1) / 2;
}

void RuntimeState::end_oldest(DeviceState& device) {
    const size_t count = ending_together(device.in_flight);
    Tasks done;
    double sent_us = 0;
    try {
        if (count > 1) device.driver->sleep_until_passed(device.in_flight[count - 1].mark);
    } catch (...) {
        // wait() tells.
    }
    for (size_t i = 0; i < count && !device.in_flight.empty(); ++i) {
        const InFlight flight = std::move(device.in_flight.front());
        device.in_flight.pop_front();
        try {
            device.driver->wait(flight.mark);
            if (flight.failure == nullptr) {
                sent_us += flight.sent_us;
                done.push_back(flight.task);
                continue;
            }
            flight.task->publish(device);
            note_whether_busy(device);
            abandon(flight.task, TaskStatus::kFailed, flight.task->named(flight.failure));
        } catch (...) {
            repeat_or_fail(device, flight.task, std::current_exception());
        }
    }
    note_times(device, done, sent_us);
    std::erase_if(done, [&](const std::shared_ptr<TaskState>& task) { return !end(device, task); });
    device.tasks_run.fetch_add(done.size());
    note_whether_busy(device);
    complete(done);
    // By what it has taken the scheduler may have something now for a device that found nothing.
    if (threads_.size() > 1) wake_workers();
}

/// Before anybody hears that the last has ended.
void RuntimeState::note_whether_busy(DeviceState& device) {
    const std::lock_guard guard(device.next_mutex);
    device.busy = !device.in_flight.empty() || device.next != nullptr;
}

/// What is known is when the last of them has ended. What it took to send what they read is no part of what
/// is learned of them: schedulers count that by where the data lies.
void RuntimeState::note_times(DeviceState& device, std::span<const std::shared_ptr<TaskState>> done,
                              double sent_us) {
    constexpr double kLeastPart = 0.05;  // is the kernel's, whatever the copies were thought to take
    if (done.empty()) return;
    const double now_us = device.driver->now_us();
    double start_us = std::max(done.front()->times.started_us, std::exchange(device.last_ended_us, now_us));
    const auto count = static_cast<double>(done.size());
    const double each_us = (now_us - start_us) / count;
    const double learned_us = std::max(each_us - sent_us / count, kLeastPart * each_us);
    for (const auto& task : done) {
        task->times = {start_us, start_us + each_us};
        if (device.driver->trace != nullptr)
            device.driver->trace->ran(task->shown_name(), task->times.started_us, task->times.ended_us);
        start_us += each_us;
        if (device.costs != nullptr && task->tells_cost)
            device.costs->add(task->signature(), learned_us, device.driver->compiles_at_first_launch());
    }
}

bool RuntimeState::end(DeviceState& device, const std::shared_ptr<TaskState>& task) {
    try {
        task->publish(device);
        if (task->is_ahead && left_to_predecessors(task, false)) return false;
        const CallbackScope scope(*task);
        if (task->finish) task->finish(device.device, *task->handle);
        return true;
    } catch (...) {
        abandon(task, TaskStatus::kFailed, std::current_exception());
        return false;
    }
}

void RuntimeState::repeat_or_fail(DeviceState& device, const std::shared_ptr<TaskState>& task,
                                  const std::exception_ptr& why) {
    const bool lost = lost_by(why);
    if (lost) lose(device, why);
    if (left_to_predecessors(task, lost)) return;
    if (!lost || !task->may_run_again(device)) {
        note_whether_busy(device);
        task->changed_in_place = lost;  // published by what is locked there
        abandon(task, TaskStatus::kFailed, task->named(why));
        return;
    }
    Tasks again{task}, stranded;
    std::vector<TaskPointer> ready;
    {
        const std::lock_guard guard(graph_mutex());
        task->status = TaskStatus::kReady;
        task->ran_on = -1;
        task->taken_by = -1;
        stranded = settle_stranded(again);
        ready = handles_of(again);
    }
    hand_over(ready);
    withdraw(std::move(stranded));
}

bool RuntimeState::runs_anywhere(const TaskState& task) const {
    return std::any_of(devices_.begin(), devices_.end(),
                       [&](const auto& device) { return task.runs_on(*device); });
}

void RuntimeState::lose(DeviceState& device, const std::exception_ptr& why) {
    if (device.driver->dead) return;
    {
        const std::lock_guard guard(graph_mutex());
        device.loss = why;
        device.driver->dead = true;
        lost_device_ = true;
    }
    // What was launched may be at work in the program's memory still.
    if (device.driver->info().shares_host_memory) device.driver->drain();
    const std::deque<InFlight> flights = std::exchange(device.in_flight, {});
    device.busy = false;
    for (const InFlight& flight : flights) repeat_or_fail(device, flight.task, why);
    if (const auto next = device.take_next(); next != nullptr) put_back(next);
    Tasks ready, stranded;
    {
        const std::lock_guard guard(graph_mutex());
        for (const auto& task : live_)
            if (task->status == TaskStatus::kReady) ready.push_back(task);
        stranded = settle_stranded(ready);
    }
    withdraw(std::move(stranded));
    wake_workers();
}

}  // namespace heddle::devices
