#include "tasks/inner_wait.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "cores/short_lock.hpp"
#include "heddle/error.hpp"
#include "tasks/crew.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

/// A walk looks at so many waits: where ten thousand tasks wait, each for another, it is cut short, and a
/// circle that is longer still is not found.
constexpr int kMostLooks = 10'000;
/// Of those that follow a task by data, so many are known.
constexpr size_t kMostFollowers = 256;
/// Of a circle, so many tasks are named.
constexpr int kMostTold = 10;

/// Held for longer only by a walk that goes far, or has found a circle.
constinit ShortLock all_waits;
constinit uint64_t last_walk = 0;

/// That of a future whose task this is, and has not ended; null: there is none.
InnerWait::Knot* future_of(Task& task) noexcept {
    const bool may_have = (task.special & kToldOfCancel) != 0 && task.accesses > 0;
    FutureLink* const future = may_have ? task.access(task.accesses - 1)->data->future : nullptr;
    return future == nullptr ? nullptr : &future->knot;
}

std::string name_of(const InnerWait::Caller& caller) {
    if (caller.task == nullptr) return "a kernel";
    const Task& task = *caller.task->task;
    const char* name = task.named ? const_cast<Task&>(task).notes().name : nullptr;
    return name == nullptr ? "a task without a name" : std::string("task ") + name;
}

}  // namespace

/// From what cannot be before a task on to what cannot be before those who wait for that.
struct InnerWait::Walk {
    /// Once each.
    void reach(Knot& knot, InnerWait* by, Knot* from) noexcept {
        if (knot.walk == number) return;
        knot.walk = number;
        knot.by = by;
        knot.from = from;
        knot.next = std::exchange(open, &knot);
    }
    void reach(Task& task, InnerWait* by, Knot* from) noexcept {
        if (task.sequence != nullptr) reach(task.sequence->knot, by, from);
        if (Knot* const future = future_of(task)) reach(*future, by, from);
    }
    /// What cannot be before the tasks of these frames, which all run or wait, or before the kernel.
    void reach(const Caller& caller, InnerWait* by, Knot* from) noexcept {
        if (caller.kernel != nullptr) reach(*caller.kernel, by, from);
        for (const TaskFrame* one = caller.task; one != nullptr; one = one->below) {
            if (one->kernel != nullptr) reach(*one->kernel, by, from);
            if (one->over)
                reach(one->task->sequence->knot, by, from);
            else
                reach(*one->task, by, from);
            try {
                for (Task* const follower : one->runtime->graph.followers(*one->task, kMostFollowers)) {
                    reach(*follower, by, from);
                    --left;
                }
            } catch (...) {
                // Without memory a circle through data is not found.
            }
        }
    }

    const uint64_t number = ++last_walk;
    int left = kMostLooks;
    Knot* open = nullptr;
};

InnerWait::Caller InnerWait::Caller::here() noexcept {
    if (const TaskFrame* const frame = current_frame()) return {frame, nullptr};
    const Crew* const crew = Crew::here();
    return {nullptr, crew == nullptr ? nullptr : crew->waited_for()};
}

InnerWait::InnerWait(const Caller& caller, const Target& target, Kind kind)
    : caller_(caller), target_(target), kind_(kind) {
    const std::lock_guard guard(all_waits);
    while (closes_circle()) {
        if (kind == Kind::kMay) refuse(told());
        if (!break_circle()) break;
    }
    link_ = &target.knot.waiters;
    next_ = std::exchange(*link_, this);
    if (next_ != nullptr) next_->link_ = &next_;
}

InnerWait::~InnerWait() {
    const std::lock_guard guard(all_waits);
    *link_ = next_;
    if (next_ != nullptr) next_->link_ = link_;
}

/// Whether what is waited for cannot be before the task that waits. From the target's knot back the walk
/// tells by which waits.
bool InnerWait::closes_circle() const noexcept {
    Walk walk;
    walk.reach(caller_, nullptr, nullptr);
    while (walk.open != nullptr) {
        Knot& knot = *std::exchange(walk.open, walk.open->next);
        if (&knot == &target_.knot) return true;
        for (InnerWait* wait = knot.waiters; wait != nullptr && walk.left > 0;
             wait = wait->next_, --walk.left)
            if (!wait->refused()) walk.reach(wait->caller_, wait, &knot);
    }
    return false;
}

/// Of the circle that the last walk has found. False: none of the waits in it may be refused.
bool InnerWait::break_circle() const noexcept {
    for (const Knot* at = &target_.knot; at->by != nullptr; at = at->from) {
        InnerWait& wait = *at->by;
        if (wait.kind_ == Kind::kMust) continue;
        try {
            wait.circle_ = told();
        } catch (...) {
            // Without memory it is refused without saying who waits for whom.
        }
        wait.refused_.store(true, std::memory_order_release);
        wait.target_.wake_refused(wait.target_.owner);
        return true;
    }
    return false;
}

/// Who waits for whom.
std::string InnerWait::told() const {
    const std::string caller = name_of(caller_);
    std::string text = caller + " waits for ";
    int count = 0;
    for (const Knot* at = &target_.knot; at->by != nullptr; at = at->from) {
        if (++count <= kMostTold) text += name_of(at->by->caller_) + ", which waits for ";
    }
    if (count > kMostTold) text += std::to_string(count - kMostTold) + " more, the last of which waits for ";
    return text + (count == 0 ? "one that comes after it by the data that both name" : caller);
}

void InnerWait::refuse(const std::string& circle) const {
    const std::string who = caller_.task == nullptr ? "kernel" : "task";
    throw Error(
        ErrorCode::kInvalidArgument,
        "a " + who +
            " cannot wait for what waits, by a task of it, by its data or through others, for this " + who +
            ": neither would ever be done" + (circle.empty() ? "" : " (" + circle + ")") +
            ". Order such tasks by data that they name, or give what is to be waited for a sequence of "
            "its own");
}

}  // namespace heddle
