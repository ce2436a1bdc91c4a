// StarPu: the StarPU of this process, of which there is one: its workers, and the engines that use them.
//
// StarPU is started with the first engine and stays: each start costs 16 ms and loses a kilobyte (1.3.10).
// Its workers are threads of ours that call its driver (starpu_driver_run_once), since its own threads never
// sleep; a scheduling policy of ours says what they run. A worker serves one engine at a time, as many at
// once as that may have tasks at once. One with nothing to do gives its CPUs back after some milliseconds and
// sleeps.
//
// Any thread. Nothing outlives the process.
#pragma once

#include <starpu.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/clock.hpp"

namespace heddle {

class StarPuEngine;

class StarPu {
  public:
    /// A thread that is a worker of StarPU's.
    struct Worker {
        int index;
        starpu_driver driver;
        /// The one engine where it may have a seat; perhaps it has gone since.
        const StarPuEngine* seated = nullptr;
        cpu_set_t free{};  ///< where it can be while it has none
        StarPuEngine* serves = nullptr;
        bool in_hand = false;           ///< the driver has taken a task and not yet run it
        starpu_task* paused = nullptr;  ///< the one that the driver runs has paused
    };

    /// Starts it if need be. Throws kUnavailable where it cannot be had, kLimit where there are no threads.
    [[nodiscard]] static StarPu& of_process();
    /// "" or why it cannot be had.
    [[nodiscard]] static std::string problem();
    /// The calling thread's, or null.
    [[nodiscard, gnu::noinline]] static Worker*& here() noexcept;
    /// This build of StarPU has no more workers.
    static constexpr int kMostWorkers =
        STARPU_MAXCPUS < STARPU_NMAXWORKERS ? STARPU_MAXCPUS : STARPU_NMAXWORKERS;

    void join(StarPuEngine& engine);
    /// Has no tasks left. Returns when no worker has to do with it any more.
    void leave(StarPuEngine& engine);
    /// One that is not `engine` has something to do. Any thread.
    [[nodiscard]] bool others_have_work(const StarPuEngine& engine);
    /// There is something to do: a worker that sleeps looks again.
    void ring() noexcept;

  private:
    StarPu() = default;
    void start();
    void work(Worker& worker) noexcept;
    /// An engine that has work and room for one more worker; it is visited.
    [[nodiscard]] StarPuEngine* choose(size_t& from);
    void end_visit(StarPuEngine& engine);
    /// Calls `visit` for each engine in turn, until that returns true.
    template <class Visit>
    bool for_each(Visit visit);
    void rest_but_in(Worker& worker, const StarPuEngine* but);
    bool poll();
    [[nodiscard]] bool has_work();
    /// Looks a little longer for work. True: there is some.
    [[nodiscard]] bool linger();
    bool serve_strangers(Worker& worker);
    void sleep(uint32_t seen, Nanoseconds longest) noexcept;

    std::mutex mutex_;  // for those below
    std::vector<StarPuEngine*> engines_;
    std::condition_variable left_;

    std::atomic<bool> polling_{false};  // a worker calls the polling services
    // Workers that sleep or are about to: counted before they look for the last time. Who makes something to
    // be done looks here afterwards; a full fence on both sides.
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<uint32_t> bell_{0};  // a futex: rises with each thing to be done while somebody sleeps
};

}  // namespace heddle
