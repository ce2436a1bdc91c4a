#include "engines/tbb/tbb_kernels.hpp"

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engines/tbb/allowed_threads.hpp"

namespace heddle {
namespace {

/// The threads of oneTBB that come to the arena, and go. One for which the kernel has no CPU yet is held up
/// on its way in, since an arena cannot be made wider.
class Comings final : public tbb::task_scheduler_observer {
  public:
    Comings(tbb::task_arena& arena, KernelCrew& crew) : tbb::task_scheduler_observer(arena), crew_(crew) {
        observe(true);
    }
    /// When all of them have gone: one that is left there would not be told to leave.
    ~Comings() noexcept override {
        crew_.close();
        std::unique_lock lock(mutex_);
        gone_.wait(lock, [this] { return inside_ == 0; });
        lock.unlock();
        observe(false);
    }
    Comings(const Comings&) = delete;
    Comings& operator=(const Comings&) = delete;

    void on_scheduler_entry(bool worker) override {
        if (!worker) return;
        {
            const std::lock_guard guard(mutex_);
            ++inside_;
        }
        crew_.join_when_there_is_room();
    }
    void on_scheduler_exit(bool worker) override {
        if (!worker) return;
        crew_.leave();
        const std::lock_guard guard(mutex_);
        if (--inside_ == 0) gone_.notify_all();
    }

  private:
    KernelCrew& crew_;
    std::mutex mutex_;
    std::condition_variable gone_;
    int inside_ = 0;
};

void run_kernel(KernelCrew& crew, int width, void (*function)(void*), void* argument) {
    const AllowedThreads threads(static_cast<size_t>(width - 1));
    tbb::task_arena arena(width, 1);
    arena.initialize();
    const Comings comings(arena, crew);
    if (width > 1) {
        // Its threads come now and get their CPUs, while this one does not mind to let them pass.
        arena.enqueue([] {});
        std::this_thread::yield();
    }
    arena.execute([&] { function(argument); });
}

int others_at_work(int joined) {
    return joined - 1;
}

}  // namespace

const KernelRunner kTbbKernels{run_kernel, nullptr, others_at_work, false};

}  // namespace heddle
