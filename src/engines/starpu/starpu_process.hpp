// StarPu: the StarPU of this process, of which there is one: its workers, and the engines that use them.
//
// StarPU is started with the first engine and stays: each start costs 16 ms and loses a kilobyte (1.3.10).
// Its workers are threads of ours that call its driver (starpu_driver_run_once), since its own threads never
// sleep; a scheduling policy of ours says what they run (starpu_policy.hpp). A worker serves one engine at a
// time, as many at once as that may have tasks at once. One with nothing to do gives its CPUs back after some
// milliseconds and sleeps. Where devices are wanted when it is started, each of its OpenCL devices has a
// worker, too, which has no CPU of its own and sleeps while nobody uses devices.
//
// Any thread. Nothing outlives the process.
#pragma once

#include <starpu.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "tasks/device_choice.hpp"

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
        bool has_device = false;
        uint64_t looked = 0;            ///< of starpu_policy::placed(): none of so many is here any more
        bool in_hand = false;           ///< the driver has taken a task and not yet run it
        starpu_task* paused = nullptr;  ///< the one that the driver runs has paused
        bool ends_task = false;  ///< the driver tells StarPU of the end of one, and what that makes ready
        starpu_task* kept = nullptr;  ///< which this worker runs next, as nobody else knows of it
    };

    /// Starts it if need be. Throws kUnavailable where it cannot be had, kLimit where there are no threads.
    [[nodiscard]] static StarPu& of_process(bool with_devices);
    /// That which of_process() has started, and whose policy asks.
    [[nodiscard]] static StarPu& running() noexcept;
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
    /// The same for all that sleep: they know what there is for whom.
    void ring_all() noexcept;

    [[nodiscard]] std::span<const EngineDevice> devices() const noexcept { return devices_; }
    /// From now on until leave_devices() somebody uses them.
    void drive_devices() noexcept;
    void leave_devices() noexcept { users_of_devices_.fetch_sub(1); }

  private:
    StarPu() = default;
    void start(bool with_devices);
    void start_workers(std::span<const starpu_driver> drivers, size_t with_devices);
    static void begin(Worker& worker) noexcept;
    void work(Worker& worker) noexcept;
    void work_on_device(Worker& worker) noexcept;
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
    uint64_t departures_ = 0;

    std::vector<EngineDevice> devices_;     // before the first engine joins
    std::atomic<int> devices_to_start_{0};  // whose drivers are not initialized
    std::atomic<int> users_of_devices_{0};  // workers of devices wait for one

    std::atomic<bool> polling_{false};  // a worker calls the polling services
    // Workers that sleep or are about to: counted before they look for the last time. Who makes something to
    // be done looks here afterwards; a full fence on both sides.
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<uint32_t> bell_{0};  // a futex: rises with each thing to be done while somebody sleeps
};

}  // namespace heddle
