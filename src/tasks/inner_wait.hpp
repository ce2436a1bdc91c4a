// InnerWait: a task that waits for a sequence or a future; so that circles of such waits are found.
//
// A sequence cannot be done before its tasks, a future not be settled before its own, and a task that waits
// not end before what it waits for. So the waits of tasks say what waits for what, and a wait that closes a
// circle would never end: it is refused. Where it cannot be, since a Sequence is being destroyed, another
// wait of the circle is. What tasks wait for by other means (conditions, data) is not seen.
//
// On the stack of who waits. All that there are hang together under one lock of the process, for tasks wait
// across runtimes; who waits outside of tasks does not come here, nor who finds that nothing is to be waited
// for.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "tasks/frame.hpp"

namespace heddle {

class InnerWait {
  public:
    struct Knot;

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

    /// In the task of `frame`. Throws kInvalidArgument where a circle would be closed; with kMust refuses
    /// another wait of it, if there is one that may be.
    InnerWait(const TaskFrame& frame, const Target& target, Kind kind);
    ~InnerWait();
    InnerWait(const InnerWait&) = delete;
    InnerWait& operator=(const InnerWait&) = delete;

    /// Another wait has closed a circle. Who waits is woken after this was set.
    [[nodiscard]] bool refused() const noexcept { return refused_.load(std::memory_order_acquire); }
    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    /// Throws kInvalidArgument; says who waits for whom, where that is known.
    [[noreturn]] void refuse() const { refuse(circle_); }

  private:
    /// Of the tasks that wait one on top of the other, so many are known.
    static constexpr size_t kMostFrames = 8;

    /// In the list of what cannot be done before this.
    struct Held {
        InnerWait* wait;
        Held* next;
        Held** link;
    };

    void hold_up(Knot& knot) noexcept;
    [[nodiscard]] Knot* find_circle(const TaskFrame& frame) const noexcept;
    [[nodiscard]] static bool break_circle(const TaskFrame& frame, Knot& end) noexcept;
    [[nodiscard]] static std::string told(const TaskFrame& frame, const Knot& end);
    [[noreturn]] static void refuse(const std::string& circle);

    const TaskFrame& frame_;
    const Target target_;
    const Kind kind_;
    std::string circle_;  // written before refused_
    std::atomic<bool> refused_{false};
    std::array<Held, 2 * kMostFrames> held_;  // each task holds up its sequence, and its future
    size_t count_ = 0;
};

/// Of a sequence or a future: the waits of its tasks, and what a walk has to remember. Under the lock.
struct InnerWait::Knot {
    Held* waits = nullptr;
    // Of the walk with that number: by which wait, of a task that holds up what, it came here.
    uint64_t walk = 0;
    InnerWait* by = nullptr;
    Knot* from = nullptr;
    Knot* next = nullptr;  ///< to be looked at
};

}  // namespace heddle
