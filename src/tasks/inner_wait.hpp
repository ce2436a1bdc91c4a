// InnerWait: a task that waits for a sequence; so that circles of such waits are found.
//
// A sequence cannot be done before its tasks, and a task that waits not before the sequence that it waits
// for. So the waits of tasks say which sequence waits for which, and a wait that closes a circle would never
// end: it is refused. Where it cannot be, since a Sequence is being destroyed, another wait of the circle is.
// What tasks wait for by other means (conditions, data, futures) is not seen.
//
// On the stack of who waits. All that there are hang together under one lock of the process, for tasks wait
// across runtimes; who waits outside of tasks does not come here.
#pragma once

#include <array>
#include <atomic>

#include "tasks/frame.hpp"

namespace heddle {

class InnerWait {
  public:
    /// Of a sequence: the waits of its tasks, and what a walk has to remember. Under the lock.
    struct Knot;

    enum class Kind : bool {
        kMay,   ///< be refused
        kMust,  ///< come to its end
    };

    /// In the task of `frame`. Throws kInvalidArgument where a circle would be closed; with kMust refuses
    /// another wait of it, if there is one that may be.
    InnerWait(const TaskFrame& frame, detail::SequenceState& target, Kind kind);
    ~InnerWait();
    InnerWait(const InnerWait&) = delete;
    InnerWait& operator=(const InnerWait&) = delete;

    /// Another wait has closed a circle. Who waits is woken after this was set.
    [[nodiscard]] bool refused() const noexcept { return refused_.load(std::memory_order_acquire); }
    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    [[noreturn]] static void refuse();

  private:
    /// Of the tasks that wait one on top of the other, so many are known.
    static constexpr size_t kMostHeld = 8;

    /// In the list of a sequence that cannot be done before this.
    struct Held {
        InnerWait* wait;
        Held* next;
        Held** link;
    };

    [[nodiscard]] detail::SequenceState* find_circle(const TaskFrame& frame) const noexcept;
    [[nodiscard]] static bool break_circle(detail::SequenceState& end) noexcept;

    detail::SequenceState& target_;
    const Kind kind_;
    std::atomic<bool> refused_{false};
    std::array<Held, kMostHeld> held_;
    size_t count_ = 0;
};

struct InnerWait::Knot {
    Held* waits = nullptr;
    // Of the walk with that number: by which wait, of a task in which sequence, it came here.
    uint64_t walk = 0;
    InnerWait* by = nullptr;
    detail::SequenceState* from = nullptr;
    detail::SequenceState* next = nullptr;  ///< to be looked at
};

}  // namespace heddle
