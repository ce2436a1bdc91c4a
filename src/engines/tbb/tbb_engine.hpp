// TbbEngine: tasks as tasks of oneTBB, in an arena of its own. See GuestEngine.
//
// The arena has a slot for each worker, and one for who stands in for them. (A task that oneTBB suspends
// would keep its thread in the arena: docs/ENGINES.md.)
#pragma once

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include <condition_variable>
#include <mutex>

#include "engines/guests/guest_engine.hpp"
#include "engines/tbb/allowed_threads.hpp"

namespace heddle {

class TbbEngine final : public GuestEngine {
  public:
    explicit TbbEngine(const EngineOptions& options);
    ~TbbEngine() noexcept override;

  private:
    /// Tells of threads that come to the arena and leave it.
    class Observer final : public tbb::task_scheduler_observer {
      public:
        Observer(TbbEngine& engine, tbb::task_arena& arena)
            : tbb::task_scheduler_observer(arena), engine_(engine) {}
        void on_scheduler_entry(bool worker) override;
        void on_scheduler_exit(bool worker) override;

      private:
        TbbEngine& engine_;
    };

    void make_call() override;
    void make_poll() override;
    void as_on_its_threads(const std::function<void()>& serve) override;
    [[nodiscard]] uintptr_t construct_here() const noexcept override;
    [[nodiscard]] const char* refusal_of_pause() const noexcept override;
    void lost_seat(Seats::Seat& seat) noexcept override { sit_idle(seat); }
    void sit_idle(Seats::Seat& seat) noexcept;

    std::mutex mutex_;  // for inside_
    int inside_ = 0;    // threads in the arena
    std::condition_variable left_;

    AllowedThreads threads_;
    /// Of nobody's algorithm: the first insertion may come from one, which may be cancelled and go.
    tbb::task_group_context context_{tbb::task_group_context::isolated};
    tbb::task_group group_{context_};
    tbb::task_arena arena_;
    Observer observer_;
};

}  // namespace heddle
