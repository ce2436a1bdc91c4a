#include "offload/kernel.hpp"

#include <optional>
#include <utility>

#include "heddle/error.hpp"
#include "tasks/crew.hpp"
#include "tasks/frame.hpp"

namespace heddle::detail {

void KernelState::compute() noexcept {
    TaskFrame* const frame = current_frame();
    frame_.store(frame, std::memory_order_relaxed);
    if (frame != nullptr) frame->kernel = &knot;
    try {
        function();
    } catch (...) {
        error = std::current_exception();
    }
    // What it captured goes while its thread is still the kernel's.
    function = nullptr;
}

void KernelState::tell() noexcept {
    if (ended) ended(error);
    ended = nullptr;
    if (TaskFrame* const frame = current_frame()) frame->kernel = nullptr;
    frame_.store(nullptr, std::memory_order_relaxed);
    Waiting* woken;
    {
        const std::lock_guard guard(mutex_);
        woken = std::exchange(waiting_, nullptr);
        ended_.store(true, std::memory_order_release);
    }
    if (forget) std::exchange(forget, nullptr)(*this);
    while (woken != nullptr) {
        Waiting* const one = std::exchange(woken, woken->next);
        one->waiter->wake();
    }
}

bool KernelState::is_here() const noexcept {
    if (const Crew* crew = Crew::here(); crew != nullptr && crew->kernel() == this) return true;
    const TaskFrame* const own = frame_.load(std::memory_order_relaxed);
    if (own == nullptr) return false;
    for (const TaskFrame* frame = current_frame(); frame != nullptr; frame = frame->below)
        if (frame == own) return true;
    return false;
}

void KernelState::wake_refused(void* kernel) noexcept {
    KernelState& self = *static_cast<KernelState*>(kernel);
    Waiting* woken = nullptr;
    {
        const std::lock_guard guard(self.mutex_);
        for (Waiting** link = &self.waiting_; *link != nullptr;) {
            Waiting& one = **link;
            if (one.wait == nullptr || !one.wait->refused()) {
                link = &one.next;
                continue;
            }
            *link = std::exchange(one.next, woken);
            woken = &one;
        }
    }
    while (woken != nullptr) std::exchange(woken, woken->next)->waiter->wake();
}

void KernelState::wait_until_ended(InnerWait::Kind kind) {
    if (done()) return;
    if (is_here())
        throw Error(ErrorCode::kInvalidArgument,
                    "a kernel cannot wait for itself: let who spawned it do so, or another kernel");
    std::optional<InnerWait> wait;
    if (const auto caller = InnerWait::Caller::here(); !caller.is_outside())
        wait.emplace(caller, InnerWait::Target{knot, &wake_refused, this}, kind);
    const auto refused = [&] { return wait && wait->refused(); };
    Waiting self{wait ? &*wait : nullptr, nullptr, nullptr};
    const auto publish = [&](Waiter& waiter) noexcept {
        self.waiter = &waiter;
        const std::lock_guard guard(mutex_);
        if (ended_.load(std::memory_order_relaxed) || refused()) return false;
        self.next = std::exchange(waiting_, &self);
        return true;
    };
    while (!done() && !refused()) wait_for_wake(publish);
    if (!done()) wait->refuse();
}

}  // namespace heddle::detail
