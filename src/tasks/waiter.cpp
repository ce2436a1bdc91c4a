#include "tasks/waiter.hpp"

#include <atomic>
#include <cstdint>

#include "cores/futex.hpp"
#include "heddle/error.hpp"
#include "tasks/crew.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

class SleepingThread final : public Waiter {
  public:
    void wake() noexcept override {
        woken_.store(1, std::memory_order_release);
        // The thread may be gone by now: a futex asks nothing of its address.
        futex_wake(woken_, 1);
    }
    void sleep() noexcept {
        while (woken_.load(std::memory_order_acquire) == 0) futex_wait(woken_, 0, Time::max());
    }

  private:
    std::atomic<uint32_t> woken_{0};
};

}  // namespace

void wait_for_wake(Announcement publish, Wakes by) {
    const auto sleep = [&] {
        SleepingThread thread;
        if (publish.call(publish.argument, thread)) thread.sleep();
    };
    TaskFrame* frame = current_frame();
    if (frame == nullptr) return sleep_in_kernel(sleep);
    Engine& engine = *frame->runtime->engine;
    try {
        begin_wait(*frame);
        const TaskPlace::Away away(frame->place);
        const TracedTask::Pause pause(frame->traced);
        engine.suspend(publish);
    } catch (const Error& error) {
        if (by != Wakes::kTimer || error.code() != ErrorCode::kLimit) throw;
        sleep();
    }
}

}  // namespace heddle
