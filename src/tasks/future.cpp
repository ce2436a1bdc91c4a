#include "heddle/future.hpp"

#include <mutex>
#include <new>
#include <utility>

#include "cores/short_lock.hpp"
#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::detail {
namespace {

/// On the stack of who waits.
struct FutureWaiter {
    const InnerWait* wait;
    Waiter* waiter;
    FutureWaiter* next;
};

}  // namespace

/// Goes with the last future and without a wait: a task whose closure has a share of it has no use for the
/// datum once that is gone, and others cannot name it any more.
struct FutureState::Core {
    Core(const SequenceState& sequence, const FutureState& state)
        : data(sequence.runtime, {nullptr, 1, 1, 1, 1}), link{state, sequence.domain.get()} {
        data.future = &link;
    }
    /// Of a Core: who was refused goes on.
    static void wake_refused(void* core) noexcept;

    DataState data;
    ShortLock lock;  // for `waiters` and, with them, FutureState::settled_
    FutureWaiter* waiters = nullptr;
    FutureLink link;
};

void FutureState::Core::wake_refused(void* core) noexcept {
    Core& self = *static_cast<Core*>(core);
    FutureWaiter* woken = nullptr;
    {
        const std::lock_guard guard(self.lock);
        for (FutureWaiter** link = &self.waiters; *link != nullptr;) {
            FutureWaiter& one = **link;
            if (!one.wait->refused()) {
                link = &one.next;
                continue;
            }
            *link = std::exchange(one.next, woken);
            woken = &one;
        }
    }
    while (woken != nullptr) std::exchange(woken, woken->next)->waiter->wake();
    self.data.runtime.engine->notify();
}

FutureState::FutureState(SequenceState& sequence) : core_(std::make_unique<Core>(sequence, *this)) {}

FutureState::~FutureState() = default;

DataView& FutureState::view() const noexcept {
    return core_->data;
}

/// The first time counts: its one task says so when it fails, too, after what its function said.
void FutureState::settle(std::exception_ptr error) noexcept {
    if (settled()) return;
    error_ = std::move(error);
    FutureWaiter* woken;
    {
        const std::lock_guard guard(core_->lock);
        settled_.store(true, std::memory_order_release);
        woken = std::exchange(core_->waiters, nullptr);
    }
    while (woken != nullptr) std::exchange(woken, woken->next)->waiter->wake();
    core_->data.runtime.engine->notify();
}

void FutureState::wait() const {
    if (settled()) return;
    const TaskFrame* innermost = current_frame();
    for (const TaskFrame* frame = innermost; frame != nullptr; frame = frame->below)
        for (uint32_t i = 0; i < frame->task->accesses; ++i)
            if (frame->task->access(i)->data == &core_->data)
                throw Error(ErrorCode::kInvalidArgument,
                            frame == innermost
                                ? "a task cannot wait for its own future: it would wait for its own end"
                                : "a task cannot wait for the future of one that waits under it on the same "
                                  "stack, as tasks do on engines that cannot pause them: neither would ever "
                                  "be done");
    if (InnerWait::Caller::here().is_outside())
        return core_->data.runtime.wait_until([this] { return settled(); });
    wait_inside();
}

void FutureState::wait_in_follower() const {
    if (!settled()) wait_inside();
}

void FutureState::wait_inside() const {
    const auto caller = InnerWait::Caller::here();
    const InnerWait wait(caller, {core_->link.knot, &Core::wake_refused, core_.get()}, InnerWait::Kind::kMay);
    if (caller.task != nullptr) {
        FutureWaiter self{&wait, nullptr, nullptr};
        wait_for_wake([&](Waiter& waiter) noexcept {
            self.waiter = &waiter;
            const std::lock_guard guard(core_->lock);
            if (settled() || wait.refused()) return false;
            self.next = std::exchange(core_->waiters, &self);
            return true;
        });
    } else {
        core_->data.runtime.wait_until([&] { return settled() || wait.refused(); });
    }
    if (!settled()) wait.refuse();
}

void refuse_empty_future() {
    throw Error(
        ErrorCode::kInvalidArgument,
        "this future is no task's: it was made without one, or moved away; Sequence::async() returns one");
}

void refuse_for_memory() {
    throw Error(ErrorCode::kLimit, "there is no memory for a future: wait for some of the tasks inserted");
}

}  // namespace heddle::detail
