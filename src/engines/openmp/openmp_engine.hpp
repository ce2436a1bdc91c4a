// OpenMpEngine: tasks as tasks of OpenMP, in a parallel region of its own. See GuestEngine.
//
// OpenMP runs tasks that are made outside a region at once, on who makes them. So a thread of the engine, the
// leader, owns a region and makes the tasks that call its threads for whoever is outside.
#pragma once

#include <atomic>

#include "engines/guests/guest_engine.hpp"
#include "engines/openmp/openmp_tasks.hpp"
#include "tasks/region_thread.hpp"

namespace heddle {

class OpenMpEngine final : public GuestEngine, private openmp::Work {
  public:
    /// Throws kLimit where there can be no thread.
    explicit OpenMpEngine(const EngineOptions& options);
    ~OpenMpEngine() override;

  private:
    void make_call() override;
    void make_poll() override;
    void as_on_its_threads(const std::function<void()>& serve) override { openmp::without_teams(serve); }
    [[nodiscard]] uintptr_t construct_here() const noexcept override {
        return static_cast<uintptr_t>(openmp::level());
    }
    [[nodiscard]] const char* refusal_of_pause() const noexcept override;

    void lead(int threads) noexcept override;
    void join() noexcept override;
    void part() noexcept override;
    void answer() noexcept override { answer_call(); }
    void call_services() noexcept override { poll(); }
    void park() noexcept override;

    /// Here, or by the leader.
    void make_or_want(void (*make)(openmp::Work&), std::atomic<bool>& wanted);

    // The leader's.
    void become_leader(int threads);
    /// What was wanted of it. False: nothing.
    bool make_wanted() noexcept;
    /// Sleeps until it is rung for, or for so long. False: nobody rang.
    bool doze(uint32_t seen, Nanoseconds longest) noexcept;

    void ring() noexcept;
    void ring_if(const std::atomic<bool>& dozes) noexcept;

    bool alone_ = false;  ///< the region has one thread, which runs what it would make
    alignas(64) std::atomic<bool> call_wanted_{false}, poll_wanted_{false};
    /// A futex: rises with each thing that the leader may want to know while it dozes.
    std::atomic<uint32_t> bell_{0};
    std::atomic<bool> dozes_{false};
    std::atomic<bool> dozes_long_{false};  ///< since nobody has a CPU that it would have to take back
    std::atomic<uint32_t> led_{0};         ///< a futex: lead() has returned
    RegionThread leader_;                  // last: it uses all of the above
};

}  // namespace heddle
