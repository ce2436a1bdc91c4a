#include "offload/kernel.hpp"

#include <utility>

#include "heddle/error.hpp"
#include "tasks/crew.hpp"
#include "tasks/frame.hpp"

namespace heddle::detail {

void KernelState::compute() noexcept {
    frame_.store(current_frame(), std::memory_order_relaxed);
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

void KernelState::wait_until_ended() {
    if (done()) return;
    if (is_here())
        throw Error(ErrorCode::kInvalidArgument,
                    "a kernel cannot wait for itself: let who spawned it do so, or another kernel");
    Waiting self{nullptr, nullptr};
    const auto publish = [&](Waiter& waiter) noexcept {
        self.waiter = &waiter;
        const std::lock_guard guard(mutex_);
        if (ended_.load(std::memory_order_relaxed)) return false;
        self.next = std::exchange(waiting_, &self);
        return true;
    };
    while (!done()) wait_for_wake(publish);
}

}  // namespace heddle::detail
