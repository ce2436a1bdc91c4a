// Idle is idle (seed 002 section 4): while nothing changes and nobody waits, no thread of heddle wakes up
// even once, in the daemon, in a pool or in a program under `heddle run`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "cores/component_cpus.hpp"
#include "cores/observer.hpp"
#include "cores/worker_pool.hpp"
#include "support/activity.hpp"
#include "support/daemon.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

constexpr auto kLong = 2s;

/// Waits until the process has come to rest, then for a long time, and compares.
void expect_idle(pid_t pid, pid_t but_for = 0) {
    Activity before = activity_of(pid, but_for);
    ASSERT_TRUE(becomes_true(
        [&] {
            std::this_thread::sleep_for(100ms);
            return std::exchange(before, activity_of(pid, but_for)) == before;
        },
        10s))
        << "it never rests: " << before;
    before = activity_of(pid, but_for);
    std::this_thread::sleep_for(kLong);
    EXPECT_EQ(activity_of(pid, but_for), before) << "in " << kLong.count() << " s without anything to do";
}

class FewItems : public WorkSource {
  public:
    bool run_one(Worker& worker) override {
        if (left_.load() <= 0 || left_.fetch_sub(1) <= 0) return false;
        worker.found_work();
        ++done;
        return true;
    }
    bool may_have_work() noexcept override { return left_ > 0; }
    void bring(int items) { left_ = items; }
    std::atomic<int> done = 0;

  private:
    std::atomic<int> left_ = 0;
};

}  // namespace

TEST(Idle, APoolThatKeepsItsWorkersDoesNotWake) {
    if (test::kThreadSanitized) GTEST_SKIP() << "the sanitizer's thread wakes up";
    const Machine machine = Machine::synthetic("core:4 pu:1");
    Exchange exchange(machine);
    ComponentCpus cpus(exchange, "idle", machine.cpus());
    FewItems source;
    WorkerPoolOptions options;
    options.limits.min = 2;
    WorkerPool pool(machine, cpus, source, options);
    source.bring(100);
    pool.work_arrived();
    ASSERT_TRUE(becomes_true([&] { return source.done == 100 && pool.workers() == 2; }, 5s));
    expect_idle(::getpid(), ::gettid());
    EXPECT_EQ(activity_of(::getpid(), ::gettid()).threads, 2);
}

TEST(Idle, APoolWithoutWorkHasNoThreadsAndNoCpus) {
    if (test::kThreadSanitized) GTEST_SKIP() << "the sanitizer's thread stays";
    const Machine machine = Machine::synthetic("core:4 pu:1");
    Exchange exchange(machine);
    ComponentCpus cpus(exchange, "idle", machine.cpus());
    FewItems source;
    WorkerPool pool(machine, cpus, source);
    source.bring(100);
    pool.work_arrived();
    ASSERT_TRUE(becomes_true(
        [&] { return source.done == 100 && activity_of(::getpid(), ::gettid()).threads == 0; }, 5s));
    EXPECT_EQ(exchange.ask([](const Ledger& ledger) { return ledger.free_cpus(); }), machine.cpus());
}

TEST(Idle, TheDaemonDoesNotWakeForIdleClients) {
    Daemon daemon({.topology = "core:4 pu:1", .arguments = {}, .variables = {}});
    WireClient first(daemon.path()), second(daemon.path());
    ASSERT_TRUE(first.join(hello_of("first", 1)));
    ASSERT_TRUE(second.join(hello_of("second", 0)));
    expect_idle(daemon.process().pid());
    EXPECT_EQ(Observer(daemon.path()).status().clients.size(), 2U);
}

TEST(Idle, AProgramUnderHeddleDoesNotWake) {
    Daemon daemon({.topology = "", .arguments = {}, .variables = {}});
    Child program({kHeddle, "run", "--require", "--", "/bin/sleep", "60"},
                  {"HEDDLE_ARBITER=" + daemon.path()});
    ASSERT_TRUE(becomes_true([&] { return Observer(daemon.path()).status().clients.size() == 1; }, 5s));
    expect_idle(program.pid());
    expect_idle(daemon.process().pid());
}

}  // namespace heddle::test
