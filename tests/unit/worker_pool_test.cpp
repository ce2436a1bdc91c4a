#include "cores/worker_pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "cores/component_cpus.hpp"
#include "cores/fixed_cpus.hpp"
#include "heddle/error.hpp"
#include "support/left_behind.hpp"
#include "support/wait_until.hpp"
#include "support/work_queue.hpp"
#include "topology/thread_affinity.hpp"

using namespace heddle;
using namespace std::chrono_literals;
using test::Queue;
using test::quick;

namespace {

/// Waits until it holds; the tests wait for what must come, never for a time in which something may come.
template <class Predicate>
[[nodiscard]] bool eventually(Predicate holds) {
    return test::becomes_true(holds, 20s);
}

const Machine kEight = Machine::synthetic("package:2 core:2 pu:2");

/// Items that last until they are let go, so that a test decides how many workers are busy.
class Gate {
  public:
    Queue::Item item() {
        return [this](Worker&) {
            ++inside;
            open_.wait(false);
            --inside;
        };
    }
    void open() {
        open_ = true;
        open_.notify_all();
    }
    std::atomic<int> inside = 0;

  private:
    std::atomic<bool> open_ = false;
};

}  // namespace

TEST(WorkerPool, RampsUpWhileThereIsWorkAndWindsDownToNoThreads) {
    Queue queue;
    Gate gate;
    for (int i = 0; i < 20; ++i) queue.push(gate.item());
    FixedCpus cpus(kEight.cpus());
    WorkerPool pool(kEight, cpus, queue, quick(2ms));
    ASSERT_TRUE(eventually([&] { return gate.inside == 8; }));
    EXPECT_EQ(pool.busy(), 8);
    EXPECT_EQ(pool.demand(), 8);
    EXPECT_EQ(pool.occupied(), kEight.cpus());
    gate.open();
    ASSERT_TRUE(eventually([&] { return queue.done == 20 && queue.ends == 8; }));
    EXPECT_TRUE(eventually([&] { return pool.occupied().empty() && cpus.demand() == 0; }));
    EXPECT_EQ(queue.starts, 8);
}

TEST(WorkerPool, StartsNoMoreWorkersThanThereIsWork) {
    Queue queue;
    Gate gate;
    for (int i = 0; i < 3; ++i) queue.push(gate.item());
    FixedCpus cpus(kEight.cpus());
    WorkerPool pool(kEight, cpus, queue, quick(0ns));
    ASSERT_TRUE(eventually([&] { return gate.inside == 3; }));
    // The fourth looked for work, found none, and has ended.
    EXPECT_TRUE(eventually([&] { return queue.ends == 1; }));
    EXPECT_EQ(queue.starts, 4);
    EXPECT_EQ(pool.occupied(), (CpuSet{0, 1, 2})) << "the threads of a core, then the next core";
    gate.open();
    EXPECT_TRUE(eventually([&] { return queue.done == 3; }));
}

TEST(WorkerPool, WorkThatComesRightAfterTheSearchIsFound) {
    // The worker has looked everywhere, and is not yet known to have found nothing.
    struct Late : Queue {
        bool run_one(Worker& worker) override {
            if (Queue::run_one(worker)) return true;
            if (late-- > 0) {
                push([](Worker&) {});
                worker.pool().work_arrived();
            }
            return false;
        }
        std::atomic<int> late = 100;
    };
    Late source;
    FixedCpus cpus(CpuSet{0});
    WorkerPool pool(kEight, cpus, source, quick(1h));
    EXPECT_TRUE(eventually([&] { return source.done == 100; }));
}

TEST(WorkerPool, WorkThatComesWhileTheLastWorkerEndsIsFound) {
    struct Late : Queue {
        void worker_ends(Worker& worker) override {
            if (late-- > 0) {
                push([](Worker&) {});
                worker.pool().work_arrived();
            }
            Queue::worker_ends(worker);
        }
        std::atomic<int> late = 100;
    };
    Late source;
    FixedCpus cpus(CpuSet{0});
    WorkerPool pool(kEight, cpus, source, quick(0ns));
    EXPECT_TRUE(eventually([&] { return source.done == 100; }));
}

TEST(WorkerPool, LosesNoWakeUp) {
    // Work comes, in ones, at the moment when the only worker runs dry; another thread brings it.
    Queue queue;
    FixedCpus cpus(CpuSet{0, 1});
    WorkerPool pool(kEight, cpus, queue, quick(50us));
    for (int i = 0; i < 5000; ++i) {
        queue.push([](Worker&) {});
        pool.work_arrived();
        if (i % 3 == 0) continue;
        const auto limit = std::chrono::steady_clock::now() + 20s;
        while (queue.done <= i - 1 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
        ASSERT_GE(queue.done, i) << "an item was never run";
    }
    EXPECT_TRUE(eventually([&] { return queue.done == 5000; }));
}

/// Which other threads wait for nothing that it needs.
TEST(WorkerPool, AThreadsDestructorsMayBringWork) {
    struct AtEnd {
        std::function<void()> function;
        ~AtEnd() {
            if (function) function();
        }
    };
    Queue queue;
    FixedCpus cpus(CpuSet{0, 1});
    WorkerPool pool(kEight, cpus, queue, quick(1ms));
    std::atomic<bool> ends = false, other_comes = false;
    queue.push([&](Worker&) {
        thread_local AtEnd at_end;
        at_end.function = [&] {
            ends = true;
            while (!other_comes) std::this_thread::yield();
            std::this_thread::sleep_for(20ms);
            queue.push([](Worker&) {});
            pool.work_arrived();
        };
    });
    pool.work_arrived();
    ASSERT_TRUE(eventually([&] { return ends.load(); }));
    other_comes = true;
    queue.push([](Worker&) {});
    pool.work_arrived();
    EXPECT_TRUE(eventually([&] { return queue.done == 3; }));
}

TEST(WorkerPool, ExceptionsReachTheOwnerAndTheWorkerGoesOn) {
    Queue queue;
    std::atomic<int> reported = 0;
    for (int i = 0; i < 10; ++i) queue.push([](Worker&) { throw std::runtime_error("an item failed"); });
    queue.push([](Worker&) {});
    WorkerPoolOptions options;
    options.on_failure = [&](const std::exception_ptr& failure) {
        EXPECT_THROW(std::rethrow_exception(failure), std::runtime_error);
        ++reported;
    };
    FixedCpus cpus(CpuSet{0});
    WorkerPool pool(kEight, cpus, queue, options);
    EXPECT_TRUE(eventually([&] { return queue.done == 1; }));
    EXPECT_EQ(reported, 10);
    EXPECT_EQ(queue.starts, 1);
}

TEST(WorkerPool, ARevokedWorkerEndsAfterItsItemAndItsCpuIsReturned) {
    Queue queue;
    Gate gate;
    for (int i = 0; i < 2; ++i) queue.push(gate.item());
    FixedCpus cpus(CpuSet{0, 1});
    WorkerPool pool(kEight, cpus, queue, quick(1s));
    ASSERT_TRUE(eventually([&] { return gate.inside == 2; }));
    cpus.set({0});
    std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(cpus.returned_cpus().empty()) << "its item still runs";
    for (int i = 0; i < 5; ++i) queue.push([](Worker&) {});
    gate.open();
    EXPECT_TRUE(eventually([&] { return queue.done == 7 && cpus.returned_cpus() == CpuSet{1}; }));
    EXPECT_EQ(pool.occupied(), CpuSet{0});
}

TEST(WorkerPool, ASleepingWorkerIsRevokedAtOnce) {
    Queue queue;
    queue.push([](Worker&) {});
    FixedCpus cpus(CpuSet{0});
    WorkerPool pool(kEight, cpus, queue, quick(1h));
    ASSERT_TRUE(eventually([&] { return queue.done == 1 && pool.busy() == 0; }));
    cpus.set({});
    EXPECT_TRUE(eventually([&] { return cpus.returned_cpus() == CpuSet{0} && queue.ends == 1; }));
    // Work without a CPU waits, and goes on as soon as there is one.
    queue.push([](Worker&) {});
    pool.work_arrived();
    EXPECT_EQ(cpus.demand(), 1);
    cpus.set({5});
    EXPECT_TRUE(eventually([&] { return queue.done == 2; }));
    EXPECT_TRUE(cpus.returned_cpus().contains(0));
}

TEST(WorkerPool, AWorkerThatIsOrderedToMoveSaysSoAndMoves) {
    Queue queue;
    std::atomic<bool> started = false;
    std::atomic<int> after = -1;
    queue.push([&](Worker& worker) {
        started = true;
        while (!worker.should_leave()) std::this_thread::yield();
    });
    queue.push([&](Worker& worker) { after = worker.cpu(); });
    WorkerPoolOptions options = quick(1h);
    options.limits.max = 1;
    FixedCpus cpus(CpuSet{0, 4});
    WorkerPool pool(kEight, cpus, queue, options);
    ASSERT_TRUE(eventually([&] { return started.load(); }));
    cpus.set({4});
    EXPECT_TRUE(eventually([&] { return after == 4 && cpus.returned_cpus() == CpuSet{0}; }));
    EXPECT_EQ(queue.starts, 1) << "the same thread, elsewhere";
}

TEST(WorkerPool, BindsWorkersToTheirCpus) {
    const Machine machine = Machine::detect();
    if (machine.synthetic()) GTEST_SKIP() << "a described machine";
    const CpuSet usable = allowance(machine).usable;
    Queue queue;
    std::mutex mutex;
    CpuSet seen;
    std::atomic<int> wrong = 0;
    int pushed = 0;
    const auto push = [&] {
        queue.push([&](Worker& worker) {
            const bool right = worker.bound() && thread_affinity() == CpuSet{sched_getcpu()} &&
                               sched_getcpu() == worker.cpu() && usable.contains(worker.cpu());
            if (!right) ++wrong;
            const std::lock_guard guard(mutex);
            seen.insert(worker.cpu());
            std::this_thread::sleep_for(100us);
        });
        ++pushed;
    };
    FixedCpus cpus(usable);
    WorkerPool pool(machine, cpus, queue, quick(1ms));
    // Binding is followed while CPUs come and go.
    for (const int cpu : usable) {
        cpus.set(CpuSet{cpu});
        EXPECT_TRUE(eventually([&] {
            push();
            pool.work_arrived();
            const std::lock_guard guard(mutex);
            return seen.contains(cpu);
        })) << "nothing ran on CPU "
            << cpu;
    }
    cpus.set(usable);
    for (int i = 0; i < 100; ++i) push();
    pool.work_arrived();
    EXPECT_TRUE(eventually([&] { return queue.done == pushed; }));
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(seen, usable);
}

TEST(WorkerPool, StopsWhileItRampsUp) {
    for (int round = 0; round < 200; ++round) {
        Queue queue;
        for (int i = 0; i < 50; ++i) queue.push([](Worker&) {});
        FixedCpus cpus(kEight.cpus());
        WorkerPool pool(kEight, cpus, queue, quick(10us));
        if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round));
        pool.stop();
        EXPECT_EQ(queue.starts, queue.ends);
        EXPECT_EQ(pool.occupied(), CpuSet{});
        EXPECT_EQ(cpus.demand(), 0);
    }
}

TEST(WorkerPool, AWorkerCannotStopItsOwnPool) {
    Queue queue;
    std::atomic<int> refused = 0;
    WorkerPool* the_pool = nullptr;
    FixedCpus cpus(CpuSet{});
    WorkerPool pool(kEight, cpus, queue, quick(1ms));
    the_pool = &pool;
    queue.push([&](Worker& worker) {
        EXPECT_EQ(&worker.pool(), the_pool);
        EXPECT_EQ(Worker::current(), &worker);
        try {
            the_pool->stop();
        } catch (const Error& error) {
            refused += error.code() == ErrorCode::kInvalidArgument ? 1 : 0;
        }
    });
    pool.work_arrived();
    cpus.set({0});
    EXPECT_TRUE(eventually([&] { return refused == 1; }));
    EXPECT_EQ(Worker::current(), nullptr);
}

TEST(WorkerPool, AThousandStartsAndStopsLeaveNothing) {
    std::thread([] {}).join();  // with the first thread of all a sanitizer starts one of its own
    const size_t threads = test::entries_of("/proc/self/task");
    const size_t descriptors = test::entries_of("/proc/self/fd");
    for (int round = 0; round < 1000; ++round) {
        Queue queue;
        queue.push([](Worker&) {});
        FixedCpus cpus(CpuSet{0, 1, 2});
        WorkerPool pool(kEight, cpus, queue, quick(1h));
        if (round % 4 != 0) continue;
        EXPECT_TRUE(eventually([&] { return queue.done == 1; }));
    }
    // A thread that was joined may be listed for a moment longer.
    EXPECT_TRUE(eventually([&] { return test::entries_of("/proc/self/task") == threads; }));
    EXPECT_EQ(test::entries_of("/proc/self/fd"), descriptors);
}

TEST(WorkerPool, PoolsOfOneProcessLendToEachOther) {
    Exchange exchange(kEight);
    ComponentCpus left_cpus(exchange, "left", CpuSet::range(0, 4));
    ComponentCpus right_cpus(exchange, "right", CpuSet::range(4, 8));
    Queue left_work, right_work;
    WorkerPool left(kEight, left_cpus, left_work, quick(1ms));
    WorkerPool right(kEight, right_cpus, right_work, quick(1ms));
    const auto free_cpus = [&] { return exchange.ask([](const Ledger& l) { return l.free_count(); }); };
    EXPECT_TRUE(eventually([&] { return free_cpus() == 8; })) << "without work, all is lent";

    Gate first;
    for (int i = 0; i < 20; ++i) left_work.push(first.item());
    left.work_arrived();
    ASSERT_TRUE(eventually([&] { return first.inside == 8; })) << "all of the other's, too";

    // The other wants its own back. The borrower leaves between items.
    Gate second;
    for (int i = 0; i < 20; ++i) right_work.push(second.item());
    right.work_arrived();
    ASSERT_TRUE(eventually([&] { return second.inside == 4; })) << "an owner starts at once";
    EXPECT_EQ(right.occupied(), CpuSet::range(4, 8));
    first.open();
    EXPECT_TRUE(eventually([&] { return left_work.done == 20; }));
    EXPECT_TRUE(eventually([&] { return second.inside == 8; })) << "and borrows what became free";
    second.open();
    EXPECT_TRUE(eventually([&] { return right_work.done == 20 && free_cpus() == 8; }));
    EXPECT_EQ(exchange.ask([](const Ledger& l) { return l.check(); }), "");
}

TEST(WorkerPool, AWorkerThatSleepsMakesRoomForAPoolThatWaits) {
    const Machine one = Machine::synthetic("pu:1");
    Exchange exchange(one);
    exchange.lend_unowned(one.cpus());
    ComponentCpus left_cpus(exchange, "left", {});
    ComponentCpus right_cpus(exchange, "right", {});
    Queue left_work, right_work;
    WorkerPool left(one, left_cpus, left_work, quick(24h));
    WorkerPool right(one, right_cpus, right_work, quick(24h));
    for (int turn = 1; turn <= 20; ++turn)
        for (auto [pool, work] : {std::pair{&left, &left_work}, std::pair{&right, &right_work}}) {
            work->push([](Worker&) {});
            pool->work_arrived();
            ASSERT_TRUE(eventually([&] { return work->done == turn; })) << "turn " << turn;
        }
}

TEST(WorkerPool, PoolsOnOneExchangeSurviveAStorm) {
    Exchange exchange(kEight);
    for (int round = 0; round < 20; ++round) {
        ComponentCpus cpus[] = {{exchange, "a", CpuSet::range(0, 4)},
                                {exchange, "b", CpuSet::range(4, 8)},
                                {exchange, "c", CpuSet{}}};
        Queue work[3];
        WorkerPool pools[] = {{kEight, cpus[0], work[0], quick(20us)},
                              {kEight, cpus[1], work[1], quick(20us)},
                              {kEight, cpus[2], work[2], quick(0ns)}};
        std::vector<std::thread> producers;
        for (size_t i = 0; i < 3; ++i)
            producers.emplace_back([&, i] {
                for (int n = 0; n < 300; ++n) {
                    work[i].push([](Worker&) {});
                    pools[i].work_arrived();
                    if (n % 16 == 0) std::this_thread::sleep_for(30us);
                }
            });
        for (std::thread& producer : producers) producer.join();
        for (Queue& queue : work) EXPECT_TRUE(eventually([&] { return queue.done == 300; }));
    }
    EXPECT_EQ(exchange.ask([](const Ledger& l) { return l.check(); }), "");
}
