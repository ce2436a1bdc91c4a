// The sequences of a RuntimeState, and the waits of threads and tasks for them.
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::detail {
namespace {

/// Is it one that the calling task is in, or was inserted by, so that it cannot be done before?
bool waits_for_caller(const SequenceState& sequence) noexcept {
    for (const TaskFrame* frame = current_frame(); frame != nullptr; frame = frame->below)
        if (is_within(*frame->task, sequence)) return true;
    return false;
}

}  // namespace

bool is_within(const Task& task, const SequenceState& sequence) noexcept {
    if (task.sequence == &sequence) return true;
    for (auto above = task.sequence->domain->parent(); above != nullptr; above = above->domain->parent())
        if (above.get() == &sequence) return true;
    return false;
}

/// The sequence may be gone; only where somebody waits for it is it looked at.
void RuntimeState::wake_waiters(const SequenceState* sequence) noexcept {
    SequenceWaiter* woken = nullptr;
    {
        const std::lock_guard guard(waiters_mutex_);
        for (SequenceWaiter** link = &waiters_of(sequence); *link != nullptr;) {
            SequenceWaiter& one = **link;
            if (one.sequence != sequence || !(one.wait->refused() || sequence->done())) {
                link = &one.next;
                continue;
            }
            *link = std::exchange(one.next, woken);
            woken = &one;
            waiter_count_.fetch_sub(1, std::memory_order_relaxed);
        }
    }
    while (woken != nullptr) std::exchange(woken, woken->next)->waiter->wake();
}

void RuntimeState::wake_refused(SequenceState& sequence) noexcept {
    wake_waiters(&sequence);
    engine->notify();
}

RuntimeState::SequenceWaiter*& RuntimeState::waiters_of(const SequenceState* sequence) noexcept {
    return waiters_[std::hash<const void*>()(sequence) / alignof(SequenceState) % waiters_.size()];
}

void RuntimeState::pause_until_done(SequenceState& sequence, const InnerWait& wait) {
    SequenceWaiter self{&sequence, &wait, nullptr, nullptr};
    const auto publish = [&](Waiter& waiter) noexcept {
        self.waiter = &waiter;
        const std::lock_guard guard(waiters_mutex_);
        SequenceWaiter*& first = waiters_of(&sequence);
        self.next = std::exchange(first, &self);
        waiter_count_.fetch_add(1, std::memory_order_seq_cst);
        if (!sequence.done() && !wait.refused()) return true;
        waiter_count_.fetch_sub(1, std::memory_order_relaxed);
        first = self.next;
        return false;
    };
    flush(lane());
    const bool must = wait.kind() == InnerWait::Kind::kMust;
    while (!sequence.done() && !wait.refused()) wait_for_wake(publish, Wakes::kAnybody, must);
}

void RuntimeState::wait_until_done(SequenceState& sequence, InnerWait::Kind kind) {
    if (sequence.done()) return;
    if (kind == InnerWait::Kind::kMay && PollingServices::in_service())
        throw Error(ErrorCode::kInvalidArgument,
                    "a polling service cannot wait for tasks, as its worker runs none meanwhile: it returns "
                    "false, and looks again when it is called again");
    const auto caller = InnerWait::Caller::here();
    if (caller.is_outside()) return wait_until([&] { return sequence.done(); });
    const InnerWait wait(caller,
                         {sequence.knot,
                          [](void* refused) noexcept {
                              auto& its = *static_cast<SequenceState*>(refused);
                              its.runtime.wake_refused(its);
                          },
                          &sequence},
                         kind);
    if (caller.task != nullptr)
        pause_until_done(sequence, wait);
    else
        wait_until([&] { return sequence.done() || wait.refused(); });
    if (!sequence.done()) wait.refuse();
}

void RuntimeState::wait(SequenceState& sequence) {
    if (waits_for_caller(sequence))
        throw Error(ErrorCode::kInvalidArgument,
                    "a task cannot wait for the sequence that it is in: it would wait for itself. "
                    "Give what it is to wait for a sequence of its own");
    wait_until_done(sequence, InnerWait::Kind::kMay);
    std::exception_ptr error = failures.take(sequence);
    forget_failures();
    if (error) std::rethrow_exception(std::move(error));
}

/// Those that were told, once no task is left that they could concern.
void RuntimeState::forget_failures() noexcept {
    if (failures.any() && all_done()) failures.forget_told();
}

void RuntimeState::wait_out(SequenceState& sequence) noexcept {
    while (true) {
        try {
            return wait_until_done(sequence, InnerWait::Kind::kMust);
        } catch (...) {
            let_others_run();
        }
    }
}

void RuntimeState::let_others_run() noexcept {
    try {
        if (const TaskFrame* frame = current_frame())
            if (frame->runtime->engine->help(frame->runtime->lane(), 1)) return;
    } catch (...) {
        // Nor is there memory for that.
    }
    std::this_thread::yield();
}

void RuntimeState::one_ended(const std::shared_ptr<SequenceState>& sequence) noexcept {
    sequence->finished.fetch_add(1, std::memory_order_seq_cst);
    may_be_done(sequence.get());
}

void RuntimeState::keep(const std::shared_ptr<SequenceState>& sequence) noexcept {
    const std::lock_guard guard(sequences_mutex_);
    sequence->kept = sequence;
    any_kept_ = true;
}

void RuntimeState::end(const std::shared_ptr<SequenceState>& sequence) noexcept {
    sequence->has_gone.store(true, std::memory_order_release);
    if (waits_for_caller(*sequence)) return keep(sequence);
    wait_out(*sequence);
    (void)failures.take(*sequence);
    forget_failures();
    kept.try_to_bring_all_home();
}

void RuntimeState::wait_all() {
    for (const auto& sequence : sequences()) wait_until_done(*sequence, InnerWait::Kind::kMay);
    forget_failures();
    kept.bring_all_home();
}

std::vector<std::shared_ptr<Domain>> RuntimeState::domains_of(const DataState& data) {
    std::vector<std::shared_ptr<Domain>> all;
    if (!data.below.load(std::memory_order_relaxed)) return all;
    for (const auto& sequence : sequences())
        if (const auto& domain = sequence->domain;
            domain != root && std::ranges::find(all, domain) == all.end())
            all.push_back(domain);
    std::erase_if(all, [&](const auto& domain) { return !graph.knows(*domain, data); });
    return all;
}

void RuntimeState::enter(const std::shared_ptr<SequenceState>& sequence) {
    drop_kept();
    const std::lock_guard guard(sequences_mutex_);
    std::erase_if(sequences_, [](const auto& one) { return one.expired(); });
    sequences_.push_back(sequence);
}

/// Those that are done by now.
void RuntimeState::drop_kept() {
    const std::lock_guard guard(sequences_mutex_);
    if (!any_kept_) return;
    any_kept_ = false;
    for (const auto& one : sequences_) {
        const auto sequence = one.lock();
        if (sequence == nullptr || sequence->kept == nullptr) continue;
        if (sequence->done()) {
            (void)failures.take(*sequence);
            sequence->kept.reset();
        } else {
            any_kept_ = true;
        }
    }
}

std::vector<std::shared_ptr<SequenceState>> RuntimeState::sequences() {
    const std::lock_guard guard(sequences_mutex_);
    std::vector<std::shared_ptr<SequenceState>> live;
    for (const auto& one : sequences_)
        if (auto sequence = one.lock()) live.push_back(std::move(sequence));
    return live;
}

bool RuntimeState::all_done() {
    const std::lock_guard guard(sequences_mutex_);
    return std::ranges::all_of(sequences_, [](const auto& one) {
        const auto sequence = one.lock();
        return sequence == nullptr || sequence->done();
    });
}

}  // namespace heddle::detail
