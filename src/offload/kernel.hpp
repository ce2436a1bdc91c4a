// KernelState: a kernel between its spawning and its end, and who waits for it.
//
// Shared by the handles and by who runs it. Any thread.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>

#include "tasks/inner_wait.hpp"
#include "tasks/waiter.hpp"

namespace heddle::detail {

struct KernelState {
    /// Runs it; then tells `ended`, and wakes those who wait. Once each.
    void compute() noexcept;
    void tell() noexcept;
    void run() noexcept {
        compute();
        tell();
    }
    /// Returns when it has ended; pauses the calling task or kernel. Throws kInvalidArgument in itself, and
    /// as InnerWait.
    void wait_until_ended(InnerWait::Kind kind = InnerWait::Kind::kMay);
    [[nodiscard]] bool done() const noexcept { return ended_.load(std::memory_order_acquire); }
    /// The calling thread is in it.
    [[nodiscard]] bool is_here() const noexcept;

    std::function<void()> function;
    std::function<void(std::exception_ptr)> ended;
    std::function<void(KernelState&)> forget;  ///< called when it is done()
    std::exception_ptr error;                  ///< to be read when done()
    WaitedFor knot;                            ///< for InnerWait

  private:
    /// On the stack of who waits.
    struct Waiting {
        const InnerWait* wait;  ///< null outside of tasks and kernels
        Waiter* waiter;
        Waiting* next;
    };
    /// Of a KernelState: who was refused goes on.
    static void wake_refused(void* kernel) noexcept;

    std::atomic<bool> ended_{
        false};  // written under the mutex, last: who reads true sees what the kernel wrote
    std::mutex mutex_;
    Waiting* waiting_ = nullptr;
    std::atomic<const TaskFrame*> frame_{nullptr};  // of the task that it is, while it runs
};

}  // namespace heddle::detail
