#include "tasks/inner_wait.hpp"

#include <mutex>
#include <utility>

#include "cores/short_lock.hpp"
#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

/// A walk looks at so many waits: where ten thousand tasks of one sequence wait, each for another, it is cut
/// short, and a circle that is longer still is not found.
constexpr int kMostLooks = 10'000;
/// Of a circle, so many tasks are named.
constexpr int kMostTold = 10;

/// Held for longer only by a walk that goes far, or has found a circle.
constinit ShortLock all_waits;
constinit uint64_t last_walk = 0;

/// That of the task's future, while it runs; null: it has none.
InnerWait::Knot* future_of(const TaskFrame& frame) noexcept {
    Task& task = *frame.task;
    if ((task.special & kToldOfCancel) == 0 || frame.over) return nullptr;
    return task.access(task.accesses - 1)->data->future;
}

bool holds_up(const TaskFrame* frame, const InnerWait::Knot& knot) noexcept {
    for (; frame != nullptr; frame = frame->below)
        if (&frame->task->sequence->knot == &knot || future_of(*frame) == &knot) return true;
    return false;
}

std::string name_of(const TaskFrame& frame) {
    const Task& task = *frame.task;
    const char* name = task.named ? const_cast<Task&>(task).notes().name : nullptr;
    return name == nullptr ? "a task without a name" : std::string("task ") + name;
}

}  // namespace

InnerWait::InnerWait(const TaskFrame& frame, const Target& target, Kind kind)
    : frame_(frame), target_(target), kind_(kind) {
    const std::lock_guard guard(all_waits);
    while (Knot* const end = find_circle(frame)) {
        if (kind == Kind::kMay) refuse(told(frame, *end));
        if (!break_circle(frame, *end)) break;
    }
    size_t frames = 0;
    for (const TaskFrame* one = &frame; one != nullptr && frames < kMostFrames; one = one->below, ++frames) {
        hold_up(one->task->sequence->knot);
        if (Knot* const future = future_of(*one); future != nullptr) hold_up(*future);
    }
}

void InnerWait::hold_up(Knot& knot) noexcept {
    Held*& first = knot.waits;
    Held& held = held_[count_++];
    held = {this, first, &first};
    if (first != nullptr) first->link = &held.next;
    first = &held;
}

InnerWait::~InnerWait() {
    const std::lock_guard guard(all_waits);
    for (size_t i = 0; i < count_; ++i) {
        *held_[i].link = held_[i].next;
        if (held_[i].next != nullptr) held_[i].next->link = held_[i].link;
    }
}

/// What waits for the task of `frame` already, out of all that the target waits for; null: nothing.
InnerWait::Knot* InnerWait::find_circle(const TaskFrame& frame) const noexcept {
    const uint64_t walk = ++last_walk;
    int left = kMostLooks;
    Knot* open = &target_.knot;
    const auto reach = [&](Knot& knot, InnerWait* by, Knot* from) {
        knot.walk = walk;
        knot.by = by;
        knot.from = from;
    };
    reach(*open, nullptr, nullptr);
    open->next = nullptr;
    while (open != nullptr) {
        Knot& knot = *open;
        open = knot.next;
        if (knot.by != nullptr && holds_up(&frame, knot)) return &knot;
        for (const Held* held = knot.waits; held != nullptr && left > 0; held = held->next, --left) {
            Knot& next = held->wait->target_.knot;
            if (next.walk == walk || held->wait->refused()) continue;
            reach(next, held->wait, &knot);
            next.next = std::exchange(open, &next);
        }
    }
    return nullptr;
}

/// `end` was found by the last walk. False: none of the waits that led there may be refused.
bool InnerWait::break_circle(const TaskFrame& frame, Knot& end) noexcept {
    for (const Knot* at = &end; at->by != nullptr; at = at->from) {
        InnerWait& wait = *at->by;
        if (wait.kind_ == Kind::kMust) continue;
        try {
            wait.circle_ = told(frame, end);
        } catch (...) {
            // Without memory it is refused without saying who waits for whom.
        }
        wait.refused_.store(true, std::memory_order_release);
        wait.target_.wake_refused(wait.target_.owner);
        return true;
    }
    return false;
}

/// Who waits for whom, from the last to the first that the walk has found: each of them came by a wait.
std::string InnerWait::told(const TaskFrame& frame, const Knot& end) {
    const std::string caller = name_of(frame);
    std::string text = "waits for " + caller;
    int count = 0;
    for (const Knot* at = &end; at->by != nullptr; at = at->from) {
        if (++count <= kMostTold) text = "waits for " + name_of(at->by->frame_) + ", which " + text;
    }
    if (count > kMostTold)
        text = "waits for " + std::to_string(count - kMostTold) + " more, the last of which " + text;
    return caller + " " + text;
}

void InnerWait::refuse(const std::string& circle) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "a task cannot wait for a sequence or a future that waits, by a task of it or through others, "
        "for this task: neither would ever be done" +
            (circle.empty() ? "" : " (" + circle + ")") +
            ". Order such tasks by data that they name, or give what is to be waited for a sequence of "
            "its own");
}

}  // namespace heddle
