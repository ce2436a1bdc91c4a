// The WorkerPool as it is under the explorer: work that arrives while the last worker goes to sleep is found.
#include "cores/worker_pool.hpp"

#include "base/asymmetric_fence.hpp"
#include "cores/fixed_cpus.hpp"
#include "support/exploring.hpp"

namespace heddle::test {

void no_worker_here();

namespace {

const Machine& machine() {
    static const Machine& described = *new Machine(Machine::synthetic("core:1 pu:1"));
    return described;
}

/// One item at a time, made visible as weakly as the pool's promise allows.
class Items final : public WorkSource {
  public:
    void bring() { items_.store(1, std::memory_order_relaxed); }
    void wait_until_done() const { done_.wait(0); }

    bool run_one(Worker& worker) override {
        if (items_.load(std::memory_order_relaxed) == 0) return false;
        items_.store(0, std::memory_order_relaxed);
        worker.found_work();
        done_.store(1);
        done_.notify_all();
        return true;
    }
    bool may_have_work() noexcept override { return items_.load(std::memory_order_relaxed) != 0; }

  private:
    std::atomic<int> items_{0};
    std::atomic<int> done_{0};
};

/// A worker that is kept sleeps without a timeout: only a wake-up brings it back.
WorkerPoolOptions options() {
    WorkerPoolOptions options;
    options.limits.min = 1;
    options.bind = false;
    return options;
}

struct Pool {
    FixedCpus cpus{CpuSet{0}};
    Items items;
    WorkerPool pool{machine(), cpus, items, options()};
};

void work_arrives_while_the_worker_falls_asleep(Explorer& explorer) {
    auto pool = std::make_shared<Pool>();
    explorer.thread([pool] {
        pool->items.bring();
        pool->pool.work_arrived();
        pool->items.wait_until_done();
        no_worker_here();
        pool->pool.stop();
    });
    explorer.finally([] { no_worker_here(); });
}

constexpr Bounds kOne{.preemptions = 1, .stale_reads = 2, .runs = 400'000};

TEST(ExploredWorkerPool, FindsWorkThatArrivesWhileTheWorkerFallsAsleep) {
    const bool here = light_fences_are_free;
    for (const bool free : {false, true}) {
        light_fences_are_free = free;
        expect_holds(work_arrives_while_the_worker_falls_asleep, kOne);
        for (const Fault fault : {Fault::kNoFences, Fault::kLostWakes, Fault::kNoLocks})
            expect_found(work_arrives_while_the_worker_falls_asleep, fault, kOne);
        // membarrier(2) is no fence of one's own that could be weaker.
        if (!free) expect_found(work_arrives_while_the_worker_falls_asleep, Fault::kNotSequential, kOne);
    }
    light_fences_are_free = here;
}

}  // namespace
}  // namespace heddle::test
