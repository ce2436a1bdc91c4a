// DeviceState: a device of a runtime, and what its worker has begun on it.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/task_state.hpp"

namespace heddle::devices {

/// On its way on a device, behind those before it.
struct InFlight {
    std::shared_ptr<TaskState> task;
    double begun_us = 0;
    /// Of the time since, what it takes to send what it reads; 0 where others run meanwhile.
    double sent_us = 0;
    Mark mark = {};  // when it was launched
    /// Of one that has gone ahead: those in flight that it follows, and what they write.
    std::vector<const TaskState*> behind = {};
    TaskState::Writes coming = {};
    /// What it fails with when those of its kernels that were launched have ended; null: it goes well.
    std::exception_ptr failure = nullptr;
};

struct DeviceState {
    DeviceState(uint64_t runtime_number, unsigned at, std::shared_ptr<DeviceDriver> of)
        : runtime(runtime_number), index(at), driver(std::move(of)), device(*this) {}

    /// The task that it begins next, if there is one, is the caller's.
    [[nodiscard]] std::shared_ptr<TaskState> take_next() {
        const std::lock_guard guard(next_mutex);
        return std::exchange(next, nullptr);
    }

    const uint64_t runtime;  // its RuntimeState::number
    const unsigned index;
    const std::shared_ptr<DeviceDriver> driver;
    Device device;
    DeviceCosts* costs = nullptr;                      // null: nothing is learned
    std::deque<InFlight> in_flight;                    // the worker's
    double last_ended_us = 0;                          // the worker's
    std::deque<std::shared_ptr<TaskState>> followers;  // with graph_mutex: they may go ahead, or have ended
    /// What it begins next, whose data is on its way: the worker puts it there, and another one may take it
    /// for a device that has nothing to do. Its data is sent with the lock.
    std::mutex next_mutex;
    std::shared_ptr<TaskState> next;
    /// All that is in flight was measured before.
    bool knows_its_work = true;
    /// Of its clock, by estimates: when it has done what it has begun, and what is next. Workers write,
    /// schedulers read.
    std::atomic<double> free_at_us{0};
    /// Something is in flight: as of when the worker last asked the scheduler for more.
    std::atomic<bool> busy{false};
    std::atomic<uint64_t> tasks_run{0};
    std::exception_ptr loss;  // why it is dead, with graph_mutex
};

}  // namespace heddle::devices
