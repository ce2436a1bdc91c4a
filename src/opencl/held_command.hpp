// HeldCommand: a command that the layer keeps from the driver until it may run: a kernel of another runtime,
// or a command in OpenCL that waits for one.
//
// The program sees a user event of the driver's in its place, which always ends as complete: drivers do
// different things with user events that fail, up to aborting the process. What became of the command the
// layer knows, and tells in place of the driver (queries.cpp). In a queue that is in order a marker before
// it says when it may run, and a barrier behind it keeps back what follows; no thread waits.
//
// Any thread. A command goes when it has ended and the program has released its event.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "opencl/command_times.hpp"
#include "opencl/next.hpp"

namespace heddle::opencl {

class HeldCommand : public std::enable_shared_from_this<HeldCommand> {
  public:
    /// Begins the command; whoever sees its end calls end(). Must not block.
    using Begin = std::function<void(const std::shared_ptr<HeldCommand>&)>;

    /// Into the queue, behind these events. `event`, unless null, is the program's.
    [[nodiscard]] static cl_int hold(cl_command_queue queue, cl_command_type type,
                                     std::span<const cl_event> after, Begin begin, cl_event* event);
    /// Null for an event that is the driver's own.
    [[nodiscard]] static std::shared_ptr<HeldCommand> of(cl_event event);

    /// With CL_COMPLETE, or a negative status.
    void end(cl_int status);
    /// As clGetEventInfo would tell it.
    [[nodiscard]] cl_int status() const noexcept { return status_; }
    [[nodiscard]] cl_command_type type() const noexcept { return type_; }
    [[nodiscard]] cl_command_queue queue() const noexcept { return queue_; }
    /// The program's references.
    void retain() noexcept { ++references_; }
    /// As clReleaseEvent, of any event.
    static cl_int release(cl_event event);
    [[nodiscard]] cl_uint references() const noexcept { return references_; }
    /// Null where its queue has no profiling.
    [[nodiscard]] CommandTimes* times() noexcept { return times_.has_value() ? &*times_ : nullptr; }
    /// So far as its queue has profiling.
    void note(cl_profiling_info what) {
        if (times_.has_value()) times_->note(what);
    }
    /// As clSetEventCallback, with its status in place of the driver's: once it is that or past it, from any
    /// thread or here.
    using Callback = void(CL_CALLBACK*)(cl_event, cl_int, void*);
    [[nodiscard]] cl_int on_status(cl_int when, Callback callback, void* data);

    HeldCommand(cl_command_queue queue, cl_command_type type, Begin begin);
    ~HeldCommand();
    HeldCommand(const HeldCommand&) = delete;
    HeldCommand& operator=(const HeldCommand&) = delete;

  private:
    /// One of those it waits for has ended; the last one begins it.
    void one_less(bool failed);
    /// The same; false: it must fail, and is to be ended.
    [[nodiscard]] bool begins_or_waits(bool failed);
    [[nodiscard]] std::vector<std::shared_ptr<HeldCommand>> end_alone(cl_int status);
    /// Into the driver's queue: a marker, and what keeps the others back.
    [[nodiscard]] cl_int enter_queue(std::vector<cl_event> after);
    [[nodiscard]] cl_int enter_marker(const std::vector<cl_event>& after);
    [[nodiscard]] bool wait_for_end(cl_event event);
    void forget_if_over();
    [[nodiscard]] cl_int on_end(cl_int when, Callback callback, void* data);
    /// Those that wait for a status before its end.
    void tell_of_beginning(cl_int status);

    const cl_command_queue queue_;
    const cl_command_type type_;
    Begin begin_;
    std::shared_ptr<void> keeps_device_;  // until its end
    std::optional<CommandTimes> times_;
    cl_event event_ = nullptr;
    OwnedEvent behind_;  // kept: what fails before it in the queue makes it fail (event_ends.hpp)
    std::atomic<cl_int> status_{CL_QUEUED};  // who ends it writes, anybody reads
    std::atomic<cl_uint> references_{0};
    std::atomic<int> waits_for_{1};
    std::atomic<bool> must_fail_{false};
    std::mutex mutex_;  // for what follows
    bool over_ = false;
    std::vector<std::shared_ptr<HeldCommand>> followers_;
    struct Early {
        cl_int when;
        Callback callback;
        void* data;
    };
    std::vector<Early> early_;
};

/// Of a wait list: those that are held, so far as they have not ended well.
struct HeldWaits {
    explicit HeldWaits(std::span<const cl_event> events);
    std::vector<std::shared_ptr<HeldCommand>> held;
    [[nodiscard]] bool empty() const { return held.empty(); }
};

}  // namespace heddle::opencl
