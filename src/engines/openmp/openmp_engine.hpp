// OpenMpEngine: tasks as tasks of OpenMP, ordered by its depend clause.
//
// OpenMP runs tasks that are made outside a parallel region at once, on who makes them. So a thread of the
// engine, the feeder, owns a region and makes them all, in the order in which they were inserted; the other
// threads of the region run them. Where the runtime would soon have the feeder run tasks itself (with some
// hundreds that could run) it waits. Inserting threads put tasks into a list without a lock.
//
// Children of tasks are ordered by heddle's graph and lie, once they could run, in a heap, where also go
// tasks with a priority as soon as OpenMP says that they could run; a task of OpenMP that calls a thread to
// the heap comes behind those that are ready. So priorities hold whatever OMP_MAX_TASK_PRIORITY says.
//
// A thread that waits inside a task runs children from the heap; where there is none it gives its CPU up to a
// spare thread of the region, kSpares of which sleep in tasks made for that.
#pragma once

#include <sched.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "engines/native/priority_queue.hpp"
#include "engines/openmp/openmp_tasks.hpp"
#include "engines/seats/seats.hpp"
#include "tasks/event_count.hpp"
#include "tasks/region_thread.hpp"

namespace heddle {

class OpenMpEngine final : public Engine, private openmp::Work {
  public:
    static constexpr int kSpares = 16;

    explicit OpenMpEngine(const EngineOptions& options);
    ~OpenMpEngine() override;

    void ready(Lane& lane, Task& task) override;
    void insert(Lane& lane, Task& task) override;
    [[nodiscard]] bool own_graph() const override { return true; }
    void wait_until(Lane& lane, const std::function<bool()>& reached) override;
    void notify() override { news_.notify(); }
    bool help(Lane& lane, uint64_t wanted) noexcept override;
    void services_arrived() override;
    void sleep_in_task(const std::function<void()>& sleep) override;

  private:
    /// A thread of the region.
    struct Hand {
        Seats::Seat* seat = nullptr;
        int depth = 0;                     ///< tasks on its stack
        int calls = 0;                     ///< and of calls_
        std::atomic<uint32_t> changes{0};  ///< odd while it is in a task; written by the thread itself
        uint32_t seen = 0;                 ///< the feeder's: changes when it looked last
    };
    struct Here;
    static thread_local Here here;

    void feed(int threads) noexcept override;
    void run(Task& task) noexcept override;
    void announce(Task& task, uintptr_t event) noexcept override;
    void run_announced() noexcept override;
    void park() noexcept override;
    void nap() noexcept override;
    void depart() noexcept override;

    // The feeder's.
    void start();
    void become_feeder(int threads);
    [[nodiscard]] Task* take_inserted() noexcept;
    void make(Task& task);
    void make_calls();
    void wait_for_room();
    /// Has all workers but one nap where that one does tasks as fast as they are made.
    void keep_pace();
    void end_naps() noexcept;
    [[nodiscard]] bool somebody_idled();
    /// There is something that the feeder makes.
    [[nodiscard]] bool has_more() const noexcept;
    [[nodiscard]] bool linger() const noexcept;
    /// Sleeps until ring(), or for as long. False: nobody rang.
    bool doze(uint32_t seen, Nanoseconds longest) noexcept;
    bool poll(uint32_t seen);

    void ring() noexcept;
    [[nodiscard]] Hand& hand();
    [[nodiscard]] bool begin(Hand& hand);
    void end(Hand& hand);
    void run_chain(Task* task);
    void call();
    void without_cpu(Hand& hand, const std::function<void()>& sleep);

    EngineHost& host_;
    const EngineOptions options_;
    const int most_calls_;
    const uint64_t id_;
    Seats seats_;

    std::once_flag started_;
    RegionThread feeder_;
    std::atomic<bool> has_feeder_{false};
    cpu_set_t before_{};         ///< where the feeder could run before it was that
    pthread_t feeder_thread_{};  ///< written before the first task is made
    bool alone_ = false;         ///< the feeder's region has one thread, which runs what it would make
    std::atomic<bool> stop_{false};

    /// Inserted, newest first, linked by Task::next.
    alignas(64) std::atomic<Task*> inserted_{nullptr};
    /// A futex: rises with each thing that the feeder may want to know while it dozes.
    std::atomic<uint32_t> bell_{0};
    std::atomic<bool> dozes_{false};

    // Tasks of OpenMP made for tasks of the graph (the feeder's), ended, and at which of these to ring.
    uint64_t made_ = 0;
    uint64_t room_ = 0, window_ = 0;
    alignas(64) std::atomic<uint64_t> ended_{0};
    std::atomic<uint64_t> ring_at_{0};
    Time looked_{};  ///< keep_pace() did
    /// Nap tasks that were made and have not ended, and a futex that rises to end them.
    std::atomic<int> napping_{0};
    std::atomic<uint32_t> coarse_{0};
    bool ordered_ = false;  ///< a task had a priority: from then on all are announced

    PriorityQueue ready_;
    std::atomic<int> calls_{0};  // tasks that call a thread to ready_, made, not ended and not asleep

    EventCount news_;

    std::mutex mutex_;  // for those below
    std::vector<std::unique_ptr<Hand>> hands_;
    int hands_at_all_ = 0;  ///< threads in the region that run tasks
    int spares_ = 0;        ///< threads that park, or will as soon as they come to it, and nobody has taken
    int released_ = 0;      ///< taken, and not yet going
    int blocked_ = 0;
    std::atomic<int> to_park_{0};  ///< spares whose services are no longer needed
    std::condition_variable unparked_;
};

}  // namespace heddle
