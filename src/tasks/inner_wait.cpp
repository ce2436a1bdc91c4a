#include "tasks/inner_wait.hpp"

#include <mutex>

#include "heddle/error.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

using detail::SequenceState;

/// A walk looks at so many waits: where ten thousand tasks of one sequence wait, each for another, it is cut
/// short, and a circle that is longer still is not found.
constexpr int kMostLooks = 10'000;

constinit std::mutex all_waits;
constinit uint64_t last_walk = 0;

bool holds_up(const TaskFrame* frame, const SequenceState& sequence) noexcept {
    for (; frame != nullptr; frame = frame->below)
        if (frame->task->sequence == &sequence) return true;
    return false;
}

}  // namespace

InnerWait::InnerWait(const TaskFrame& frame, SequenceState& target, Kind kind)
    : target_(target), kind_(kind) {
    const std::lock_guard guard(all_waits);
    while (SequenceState* const end = find_circle(frame)) {
        if (kind == Kind::kMay) refuse();
        if (!break_circle(*end)) break;
    }
    for (const TaskFrame* one = &frame; one != nullptr && count_ < kMostHeld; one = one->below) {
        Held*& first = one->task->sequence->knot.waits;
        Held& held = held_[count_++];
        held = {this, first, &first};
        if (first != nullptr) first->link = &held.next;
        first = &held;
    }
}

InnerWait::~InnerWait() {
    const std::lock_guard guard(all_waits);
    for (size_t i = 0; i < count_; ++i) {
        *held_[i].link = held_[i].next;
        if (held_[i].next != nullptr) held_[i].next->link = held_[i].link;
    }
}

/// What waits for the task of `frame` already, out of all that the target waits for; null: nothing.
SequenceState* InnerWait::find_circle(const TaskFrame& frame) const noexcept {
    const uint64_t walk = ++last_walk;
    int left = kMostLooks;
    SequenceState* open = &target_;
    const auto reach = [&](SequenceState& sequence, InnerWait* by, SequenceState* from) {
        sequence.knot.walk = walk;
        sequence.knot.by = by;
        sequence.knot.from = from;
    };
    reach(target_, nullptr, nullptr);
    target_.knot.next = nullptr;
    while (open != nullptr) {
        SequenceState& sequence = *open;
        open = sequence.knot.next;
        if (sequence.knot.by != nullptr && holds_up(&frame, sequence)) return &sequence;
        for (const Held* held = sequence.knot.waits; held != nullptr && left > 0; held = held->next, --left) {
            SequenceState& next = held->wait->target_;
            if (next.knot.walk == walk || held->wait->refused()) continue;
            reach(next, held->wait, &sequence);
            next.knot.next = std::exchange(open, &next);
        }
    }
    return nullptr;
}

/// `end` was found by the last walk. False: none of the waits that led there may be refused.
bool InnerWait::break_circle(SequenceState& end) noexcept {
    for (const SequenceState* at = &end; at->knot.by != nullptr; at = at->knot.from) {
        InnerWait& wait = *at->knot.by;
        if (wait.kind_ == Kind::kMust) continue;
        wait.refused_.store(true, std::memory_order_release);
        wait.target_.runtime.wake_refused(wait.target_);
        return true;
    }
    return false;
}

void InnerWait::refuse() {
    throw Error(ErrorCode::kInvalidArgument,
                "a task cannot wait for a sequence that waits, by a task in it or through others, for the "
                "sequence of this task: neither would ever be done. Order such tasks by data that they name, "
                "or give what is to be waited for a sequence of its own");
}

}  // namespace heddle
