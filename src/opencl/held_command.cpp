#include "opencl/held_command.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <new>
#include <unordered_map>

#include "opencl/barriers.hpp"
#include "opencl/event_ends.hpp"
#include "opencl/sub_devices.hpp"

namespace heddle::opencl {
namespace {

/// By the events that stand for them. Never destroyed: commands may end while the process does.
struct HeldRegistry {
    std::mutex mutex;
    std::unordered_map<cl_event, std::shared_ptr<HeldCommand>> commands;
    std::atomic<size_t> count{0};
};

HeldRegistry& held_registry() {
    static auto* const all = new HeldRegistry;
    return *all;
}

bool has(cl_command_queue queue, cl_command_queue_properties property) {
    return (queue_value<cl_command_queue_properties>(queue, CL_QUEUE_PROPERTIES) & property) != 0;
}

}  // namespace

HeldCommand::HeldCommand(cl_command_queue queue, cl_command_type type, Begin begin)
    : queue_(queue),
      type_(type),
      begin_(std::move(begin)),
      keeps_device_(SubDevice::kept_for_command(queue_value<cl_device_id>(queue, CL_QUEUE_DEVICE))) {
    next().clRetainCommandQueue(queue_);
    if (has(queue_, CL_QUEUE_PROFILING_ENABLE)) times_.emplace(queue_);
    note(CL_PROFILING_COMMAND_QUEUED);
}

HeldCommand::~HeldCommand() {
    if (event_ != nullptr) next().clReleaseEvent(event_);
    next().clReleaseCommandQueue(queue_);
}

std::shared_ptr<HeldCommand> HeldCommand::of(cl_event event) {
    HeldRegistry& all = held_registry();
    if (all.count == 0) return nullptr;
    const std::lock_guard guard(all.mutex);
    const auto found = all.commands.find(event);
    return found == all.commands.end() ? nullptr : found->second;
}

cl_int HeldCommand::hold(cl_command_queue queue, cl_command_type type, std::span<const cl_event> after,
                         Begin begin, cl_event* event) {
    const auto command = std::make_shared<HeldCommand>(queue, type, std::move(begin));
    cl_int code = CL_SUCCESS;
    command->event_ = next().clCreateUserEvent(queue_value<cl_context>(queue, CL_QUEUE_CONTEXT), &code);
    if (code != CL_SUCCESS) return code;
    std::vector<cl_event> drivers;
    for (cl_event one : after) {
        const std::shared_ptr<HeldCommand> other = of(one);
        if (other == nullptr) {
            drivers.push_back(one);
            continue;
        }
        const std::lock_guard guard(other->mutex_);
        if (other->over_) {
            if (other->status_ < 0) command->must_fail_ = true;
            continue;
        }
        ++command->waits_for_;
        other->followers_.push_back(command);
    }
    command->references_ = event == nullptr ? 0 : 1;
    {
        HeldRegistry& all = held_registry();
        const std::lock_guard guard(all.mutex);
        all.commands.emplace(command->event_, command);
        ++all.count;
    }
    if (command->times_.has_value()) {
        ++command->waits_for_;
        command->times_->find_clock([command] { command->one_less(false); });
    }
    code = command->enter_queue(std::move(drivers));
    if (code != CL_SUCCESS) {
        command->references_ = 0;
        command->must_fail_ = true;
    } else if (event != nullptr) {
        *event = command->event_;
    }
    command->one_less(false);
    next().clFlush(queue);
    return code;
}

/// One more that it waits for.
bool HeldCommand::wait_for_end(cl_event event) {
    ++waits_for_;
    if (when_over(event, [self = shared_from_this()](cl_int status) { self->one_less(status < 0); }))
        return true;
    --waits_for_;
    return false;
}

/// Behind all that is before it in a queue that is in order, and behind these.
cl_int HeldCommand::enter_marker(const std::vector<cl_event>& after) {
    OwnedEvent marker;
    const cl_int code = next().clEnqueueMarkerWithWaitList(
        queue_, static_cast<cl_uint>(after.size()), after.empty() ? nullptr : after.data(), marker.place());
    if (code != CL_SUCCESS) return code;
    return wait_for_end(marker.get()) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

/// Of a queue, or of several. Recursive: Oclgrind runs callbacks, which may enqueue more, as it is flushed.
std::recursive_mutex& entering(cl_command_queue queue) {
    static std::array<std::recursive_mutex, 64> mutexes;
    return mutexes[std::hash<void*>()(queue) / 64 % mutexes.size()];
}

/// A command that waits for this event alone, as a marker of PoCL's does not: thousands would take minutes.
cl_int enqueue_nothing(cl_command_queue queue, cl_event after, cl_event* event) {
    const cl_int code = next().clEnqueueNativeKernel(
        queue, [](void*) {}, nullptr, 0, 0, nullptr, nullptr, 1, &after, event);
    // The driver has no such kernels.
    return code == CL_INVALID_OPERATION ? next().clEnqueueMarkerWithWaitList(queue, 1, &after, event) : code;
}

cl_int HeldCommand::enter_queue(std::vector<cl_event> after) {
    // Nobody's marker comes between this one's and its barrier: both would begin at once.
    const std::lock_guard entered(entering(queue_));
    const bool ordered = !has(queue_, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_int code = CL_SUCCESS;
    if (ordered) {
        // Behind one that has failed the driver's marker never comes.
        if (std::erase_if(after, [](cl_event one) { return drivers_status(one) < 0; }) > 0) must_fail_ = true;
        code = enter_marker(after);
        // Oclgrind does in clFlush() all that the queue has, and tells of it afterwards: so before the
        // barrier is there, and once more when this command can end.
        if (code == CL_SUCCESS) next().clFlush(queue_);
    } else {
        // PoCL's markers wait for all of the queue, whatever they are told.
        const OwnedEvent barrier = Barriers::last_of(queue_);
        if (barrier.get() != nullptr) after.push_back(barrier.get());
        for (cl_event one : after)
            if (!wait_for_end(one)) code = CL_OUT_OF_RESOURCES;
    }
    if (code != CL_SUCCESS) return code;
    // What follows in a queue that is in order waits; in any other clFinish() alone does, and what the
    // program has to wait for all.
    code = ordered || type_ == CL_COMMAND_BARRIER
               ? next().clEnqueueBarrierWithWaitList(queue_, 1, &event_, behind_.place())
               : enqueue_nothing(queue_, event_, behind_.place());
    if (code == CL_SUCCESS && !ordered && type_ == CL_COMMAND_BARRIER) Barriers::note(queue_, behind_.get());
    // Where it waits for more than this command, it outlives it.
    if (code == CL_SUCCESS) (void)when_over(behind_.get(), [](cl_int) {});
    return code;
}

void HeldCommand::one_less(bool failed) {
    if (begins_or_waits(failed)) return;
    end(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}

bool HeldCommand::begins_or_waits(bool failed) {
    if (failed) must_fail_ = true;
    if (waits_for_.fetch_sub(1) != 1) return true;
    const Begin begin = std::exchange(begin_, nullptr);
    if (must_fail_) return false;
    {
        const std::lock_guard guard(mutex_);
        status_ = CL_RUNNING;
    }
    note(CL_PROFILING_COMMAND_SUBMIT);
    tell_of_beginning(CL_RUNNING);
    begin(shared_from_this());
    return true;
}

/// With it end those that must fail then, one after the other: there may be any number, each behind the last,
/// and the caller's stack may be that of a task.
void HeldCommand::end(cl_int status) {
    std::vector<std::shared_ptr<HeldCommand>> ending{shared_from_this()};
    while (!ending.empty()) {
        const std::shared_ptr<HeldCommand> one = std::move(ending.back());
        ending.pop_back();
        for (auto& follower : one->end_alone(status))
            if (!follower->begins_or_waits(status < 0)) ending.push_back(std::move(follower));
        one->forget_if_over();
        status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    }
}

/// Returns those that wait for it.
std::vector<std::shared_ptr<HeldCommand>> HeldCommand::end_alone(cl_int status) {
    std::vector<std::shared_ptr<HeldCommand>> followers;
    note(CL_PROFILING_COMMAND_COMPLETE);
    {
        const std::lock_guard guard(mutex_);
        status_ = status;
        over_ = true;
        followers.swap(followers_);
    }
    tell_of_beginning(status);
    keeps_device_.reset();
    next().clSetUserEventStatus(event_, CL_COMPLETE);
    return followers;
}

cl_int HeldCommand::release(cl_event event) {
    const std::shared_ptr<HeldCommand> held = of(event);
    if (held == nullptr) return next().clReleaseEvent(event);
    --held->references_;
    held->forget_if_over();
    return CL_SUCCESS;
}

void HeldCommand::forget_if_over() {
    {
        const std::lock_guard guard(mutex_);
        if (!over_ || references_ > 0) return;
    }
    HeldRegistry& all = held_registry();
    const std::lock_guard guard(all.mutex);
    if (all.commands.erase(event_) > 0) --all.count;
}

cl_int HeldCommand::on_status(cl_int when, Callback callback, void* data) {
    if (when != CL_SUBMITTED && when != CL_RUNNING) return on_end(when, callback, data);
    try {
        const std::lock_guard guard(mutex_);
        if (status_ > when) {
            early_.push_back({when, callback, data});
            return CL_SUCCESS;
        }
    } catch (const std::bad_alloc&) {
        return CL_OUT_OF_HOST_MEMORY;
    }
    const cl_int status = status_;
    callback(event_, status < 0 ? status : when, data);
    return CL_SUCCESS;
}

void HeldCommand::tell_of_beginning(cl_int status) {
    std::vector<Early> told;
    {
        const std::lock_guard guard(mutex_);
        told.swap(early_);
    }
    std::ranges::stable_sort(told, std::greater(), &Early::when);
    for (const Early& one : told) one.callback(event_, status < 0 ? status : one.when, one.data);
}

cl_int HeldCommand::on_end(cl_int when, Callback callback, void* data) {
    struct Asked {
        std::shared_ptr<HeldCommand> command;
        Callback callback;
        void* data;
    };
    auto* const asked = new Asked{shared_from_this(), callback, data};
    const cl_int code = next().clSetEventCallback(
        event_, when,
        [](cl_event event, cl_int, void* given) {
            const std::unique_ptr<Asked> one(static_cast<Asked*>(given));
            one->callback(event, one->command->status(), one->data);
        },
        asked);
    if (code != CL_SUCCESS) delete asked;
    return code;
}

HeldWaits::HeldWaits(std::span<const cl_event> events) {
    for (cl_event event : events)
        if (auto command = HeldCommand::of(event); command != nullptr && command->status() != CL_COMPLETE)
            held.push_back(std::move(command));
}

}  // namespace heddle::opencl
