// A program that was fenced has the masks of its threads back when it obeys, also where it has no CPU then.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cores/arbiter_client.hpp"
#include "support/daemon.hpp"
#include "support/progress.hpp"
#include "support/wait_until.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle::test {
namespace {

/// This process as a client that leaves nothing before it is told to.
class SlowClient {
  public:
    SlowClient(const Daemon& daemon, int cpus)
        : client_({.name = "slow", .demand = cpus, .allowed = {}, .owned = {}, .path = daemon.path()},
                  {[](const CpuSet&) {}, [this](const CpuSet& asked) { asked_back(asked); }}) {}

    ArbiterClient& operator*() { return client_; }
    ArbiterClient* operator->() { return &client_; }
    void obey() {
        const std::lock_guard guard(mutex_);
        obeys_ = true;
        for (const int cpu : std::exchange(asked_, {})) client_.released(cpu);
    }

  private:
    void asked_back(const CpuSet& cpus) {
        const std::lock_guard guard(mutex_);
        if (!obeys_) return void(asked_ |= cpus);
        for (const int cpu : cpus) client_.released(cpu);
    }

    std::mutex mutex_;
    bool obeys_ = false;
    CpuSet asked_;
    ArbiterClient client_;
};

/// A thread that sleeps until it is asked where it may run.
class Sleeper {
  public:
    [[nodiscard]] CpuSet affinity() {
        asked_ = true;
        asked_.notify_all();
        thread_.join();
        return affinity_;
    }

  private:
    std::atomic<bool> asked_{false};
    CpuSet affinity_;
    std::jthread thread_{[this] {
        asked_.wait(false);
        affinity_ = thread_affinity();
    }};
};

TEST(UndoneFence, ThreadsAreAsBeforeWhereTheirProcessWantsNoCpu) {
    const CpuSet before = thread_affinity();
    if (before.count() < 2) GTEST_SKIP() << "skipped: one CPU cannot be divided";
    const Daemon daemon({});
    SlowClient slow(daemon, before.count());
    ASSERT_TRUE(slow->managed()) << slow->problem();
    EXPECT_FALSE(slow->fenced());
    const std::string file = daemon.folder() + "/progress";
    (void)map_progress(file.c_str());
    const Child taker({HEDDLE_BUILD_DIR "/bin/fault_client", daemon.path(), "1", file, "greedy"});
    ASSERT_TRUE(becomes_true([&] { return thread_affinity() != before; }, 5s)) << daemon.said();
    EXPECT_TRUE(slow->fenced());
    Sleeper begun_meanwhile;

    slow->set_demand(0, true);
    slow.obey();
    EXPECT_TRUE(becomes_true([&] { return slow->held().empty(); }, 10s)) << slow->held().to_list();
    EXPECT_TRUE(becomes_true([&] { return thread_affinity() == before; }, 10s))
        << thread_affinity().to_list() << "\n"
        << daemon.said();
    EXPECT_TRUE(becomes_true([&] { return !slow->fenced(); }, 10s));
    EXPECT_EQ(begun_meanwhile.affinity(), before);
}

}  // namespace
}  // namespace heddle::test
