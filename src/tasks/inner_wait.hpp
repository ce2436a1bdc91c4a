// InnerWait: a task or a kernel that waits for a sequence, a future or a kernel; so that circles of such
// waits are found.
//
// A sequence cannot be done before its tasks, a future not be settled before its own, nor a kernel that is a
// task; what waits does not end before what it waits for, nor do those that follow a task by data. So a
// wait says what cannot be before what, and one that closes a circle would never end: it is refused. Where it
// cannot be, since a Sequence is being destroyed, another wait of the circle is. A wait for data is one for a
// sequence (DataHandle::wait). What tasks wait for by other means (conditions, descriptors, services) is not
// seen, nor what comes to follow a task that waits already, until somebody else waits; nor the order that an
// engine with a graph of its own finds.
//
// On the stack of who waits. All that there are hang together under one lock of the process, for tasks wait
// across runtimes; who waits outside of tasks and kernels does not come here, nor who finds that nothing is
// to be waited for.
#pragma once

#include <atomic>
#include <string>

#include "tasks/frame.hpp"

namespace heddle {

class InnerWait {
  public:
    using Knot = WaitedFor;

    enum class Kind : bool {
        kMay,   ///< be refused
        kMust,  ///< come to its end
    };
    /// What is waited for, and how those who wait for it and were refused are woken.
    struct Target {
        Knot& knot;
        void (*wake_refused)(void* owner) noexcept;
        void* owner;
    };

    /// Who waits: a task, or a kernel that is none, by any thread of its own.
    struct Caller {
        const TaskFrame* task = nullptr;
        Knot* kernel = nullptr;
        /// The calling thread's; one of neither kind has neither.
        [[nodiscard]] static Caller here() noexcept;
        [[nodiscard]] bool is_outside() const noexcept { return task == nullptr && kernel == nullptr; }
    };

    /// In `caller`, which is not outside. Throws kInvalidArgument where a circle would be closed; with kMust
    /// refuses another wait of it, if there is one that may be.
    InnerWait(const Caller& caller, const Target& target, Kind kind);
    ~InnerWait();
    InnerWait(const InnerWait&) = delete;
    InnerWait& operator=(const InnerWait&) = delete;

    /// Another wait has closed a circle. Who waits is woken after this was set.
    [[nodiscard]] bool refused() const noexcept { return refused_.load(std::memory_order_acquire); }
    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    /// Throws kInvalidArgument; says who waits for whom, where that is known.
    [[noreturn]] void refuse() const { refuse(circle_); }

  private:
    struct Walk;

    [[nodiscard]] bool closes_circle() const noexcept;
    [[nodiscard]] bool break_circle() const noexcept;
    [[nodiscard]] std::string told() const;
    [[noreturn]] void refuse(const std::string& circle) const;

    const Caller caller_;
    const Target target_;
    const Kind kind_;
    std::string circle_;  // written before refused_
    std::atomic<bool> refused_{false};
    // Among those who wait for the same.
    InnerWait* next_ = nullptr;
    InnerWait** link_ = nullptr;
};

/// Of a sequence, a future or a kernel: who waits for it, and what a walk has to remember. Under the lock.
struct WaitedFor {
    InnerWait* waiters = nullptr;
    // Of the walk with that number: whose wait it cannot be before, and what that waits for; null: it cannot
    // be before the task that the walk began with.
    uint64_t walk = 0;
    InnerWait* by = nullptr;
    WaitedFor* from = nullptr;
    WaitedFor* next = nullptr;  ///< to be looked at
};

}  // namespace heddle
