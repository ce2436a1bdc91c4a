// Worker pools of two processes on one machine: cores go where the work is, and no core is used by two.
//
// The processes are forked, so that what each does can be seen in shared memory; they hear what to do through
// a pipe, and sleep in between.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <new>
#include <thread>

#include "cores/arbiter_cpus.hpp"
#include "cores/component_cpus.hpp"
#include "cores/observer.hpp"
#include "cores/outside.hpp"
#include "cores/worker_pool.hpp"
#include "support/activity.hpp"
#include "support/daemon.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

constexpr char kWork = 'w', kRest = 'r', kEnd = 'e';

/// What the processes of a test show to each other.
struct Shared {
    struct Side {
        std::atomic<bool> has_work{false};
        std::atomic<int> busy{0};
        std::atomic<long> done{0};
    };
    std::array<std::atomic<int>, 256> user{};  // by CPU: the process whose item runs there, or 0
    std::atomic<int> overlaps{0};
    std::atomic<int> overlap_cpu{-1};                      // of the latest
    std::atomic<int> overlap_first{0}, overlap_second{0};  // processes
    std::array<Side, 2> sides;
};

/// Items as long as there is work; each is on its CPU alone, or counts as an overlap.
class Items : public WorkSource {
  public:
    Items(Shared& shared, size_t side) : shared_(shared), side_(shared.sides[side]), id_(::getpid()) {}
    bool run_one(Worker& worker) override {
        if (!side_.has_work) return false;
        worker.found_work();
        std::atomic<int>& user = shared_.user[static_cast<size_t>(worker.cpu())];
        if (const int other = user.exchange(id_); other != 0) {
            ++shared_.overlaps;
            shared_.overlap_cpu = worker.cpu();
            shared_.overlap_first = other;
            shared_.overlap_second = id_;
        }
        ++side_.busy;
        const auto end = std::chrono::steady_clock::now() + 300us;
        while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
        --side_.busy;
        ++side_.done;
        user = 0;
        return true;
    }
    bool may_have_work() noexcept override { return side_.has_work; }

  private:
    Shared& shared_;
    Shared::Side& side_;
    int id_;
};

struct Kind {
    const char* name;
    const char* topology;  // "": the real machine
    bool component;        // the pool is a component of its process, and the process shares its ledger
};

Machine machine_of(const Kind& kind) {
    return *kind.topology == '\0' ? Machine::detect() : Machine::synthetic(kind.topology);
}

/// A process with a pool that does what it is told.
class PoolProcess {
  public:
    PoolProcess(const std::string& arbiter, const Kind& kind, Shared& shared, size_t side) {
        if (::pipe2(pipe_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
        pid_ = ::fork();
        if (pid_ != 0) return;
        ::close(pipe_[1]);
        try {
            serve(arbiter, kind, shared, side);
        } catch (...) {
            ::_exit(1);
        }
        ::_exit(0);
    }
    ~PoolProcess() {
        tell(kEnd);
        ::close(pipe_[1]);
        ::close(pipe_[0]);
        if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    }
    PoolProcess(const PoolProcess&) = delete;
    PoolProcess& operator=(const PoolProcess&) = delete;
    void tell(char what) const { (void)!::write(pipe_[1], &what, 1); }
    [[nodiscard]] pid_t pid() const { return pid_; }
    void kill() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

  private:
    void serve(const std::string& arbiter, const Kind& kind, Shared& shared, size_t side) const {
        const Machine machine = machine_of(kind);
        ArbiterClientOptions options;
        options.path = arbiter;
        options.name = "pool" + std::to_string(side);
        if (kind.component) {
            Exchange exchange(machine);
            const Outside outside(exchange, options);
            ComponentCpus cpus(exchange, "pool", {});
            obey(machine, cpus, shared, side);
        } else {
            ArbiterCpus cpus(machine, options);
            obey(machine, cpus, shared, side);
        }
    }
    void obey(const Machine& machine, CpuProvider& cpus, Shared& shared, size_t side) const {
        Items items(shared, side);
        WorkerPool pool(machine, cpus, items);
        for (char what = 0; ::read(pipe_[0], &what, 1) == 1 && what != kEnd;) {
            shared.sides[side].has_work = what == kWork;
            pool.work_arrived();
        }
        shared.sides[side].has_work = false;
    }

    int pipe_[2] = {-1, -1};
    pid_t pid_ = -1;
};

class PoolsTest : public testing::TestWithParam<Kind> {
  protected:
    PoolsTest() : daemon_({.topology = GetParam().topology, .arguments = {"--verbose"}, .variables = {}}) {
        void* memory =
            ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        shared_ = new (memory) Shared;
        cpus_ = allowance(machine_of(GetParam())).usable.count();
    }
    ~PoolsTest() override {
        processes_ = {};
        ::munmap(shared_, sizeof(Shared));
    }
    void SetUp() override {
        if (cpus_ < 2) GTEST_SKIP() << "one CPU cannot move";
    }
    PoolProcess& start(size_t side) {
        processes_[side] = std::make_unique<PoolProcess>(daemon_.path(), GetParam(), *shared_, side);
        return *processes_[side];
    }
    [[nodiscard]] int held(size_t side) const {
        for (const auto& client : Observer(daemon_.path()).status().clients)
            if (client.name == "pool" + std::to_string(side)) return client.granted.count();
        return 0;
    }
    [[nodiscard]] bool works_on_all(size_t side) const {
        return becomes_true([&] { return shared_->sides[side].busy == cpus_; }, 10s);
    }
    /// How much each has is the policy's: it depends on who was there first, as demand is one more than a
    /// pool has.
    [[nodiscard]] bool both_work() const {
        return becomes_true([&] { return shared_->sides[0].busy > 0 && shared_->sides[1].busy > 0; }, 10s);
    }
    /// What a failure needs to be understood: what each client has and wants, what it does, what the daemon
    /// did.
    [[nodiscard]] std::string describe() const {
        std::string text;
        for (const auto& client : Observer(daemon_.path()).status().clients)
            text += client.name + ": demand " + std::to_string(client.demand) + ", target " +
                    std::to_string(client.target) + ", granted " + client.granted.to_list() + "\n";
        for (const Shared::Side& side : shared_->sides)
            text += "busy " + std::to_string(side.busy) + ", items " + std::to_string(side.done) + "\n";
        if (shared_->overlaps != 0)
            text += "on CPU " + std::to_string(shared_->overlap_cpu) + " process " +
                    std::to_string(shared_->overlap_second) + " while " +
                    std::to_string(shared_->overlap_first) + " was\n";
        return text + daemon_.said();
    }
    /// A holder that does not get to run for 10 ms on a busy machine is fenced, and two may be on its CPU.
    void expect_no_overlap() const {
        if (daemon_.said().find("did not leave in time") != std::string::npos) return;
        EXPECT_EQ(shared_->overlaps, 0) << describe();
    }

    Daemon daemon_;
    Shared* shared_;
    int cpus_;
    std::array<std::unique_ptr<PoolProcess>, 2> processes_;
};

TEST_P(PoolsTest, CoresGoWhereTheWorkIs) {
    PoolProcess& a = start(0);
    PoolProcess& b = start(1);
    a.tell(kWork);
    EXPECT_TRUE(works_on_all(0)) << "all of the machine while the other has nothing to do\n" << describe();
    for (int round = 0; round < 5; ++round) {
        b.tell(kWork);
        EXPECT_TRUE(both_work()) << describe();
        a.tell(kRest);
        EXPECT_TRUE(works_on_all(1)) << "round " << round << "\n" << describe();
        EXPECT_TRUE(becomes_true([&] { return shared_->sides[0].busy == 0; }, 10s)) << describe();
        expect_no_overlap();
        a.tell(kWork);
        EXPECT_TRUE(both_work()) << "round " << round;
        b.tell(kRest);
        EXPECT_TRUE(works_on_all(0)) << "round " << round << "\n" << describe();
    }
    expect_no_overlap();
}

TEST_P(PoolsTest, TheCoresOfAKilledProcessGoToTheOther) {
    PoolProcess& a = start(0);
    PoolProcess& b = start(1);
    a.tell(kWork);
    b.tell(kWork);
    ASSERT_TRUE(both_work()) << describe();
    expect_no_overlap();
    a.kill();
    EXPECT_TRUE(works_on_all(1)) << describe();
    // One that was handed over is in the books as soon as the arbiter looks.
    EXPECT_TRUE(becomes_true([&] { return held(1) == cpus_; }, 10s)) << describe();
}

TEST_P(PoolsTest, TheyGoOnWithoutTheDaemonAndFindTheNextOne) {
    PoolProcess& a = start(0);
    PoolProcess& b = start(1);
    a.tell(kWork);
    b.tell(kWork);
    ASSERT_TRUE(both_work()) << describe();
    daemon_.process().end();
    const long before = shared_->sides[0].done;
    EXPECT_TRUE(becomes_true([&] { return shared_->sides[0].done > before + 50; }, 10s));
    ASSERT_TRUE(daemon_.start());
    EXPECT_TRUE(becomes_true([&] { return held(0) > 0 && held(1) > 0 && held(0) + held(1) == cpus_; }, 10s));
    a.tell(kRest);
    EXPECT_TRUE(works_on_all(1)) << describe();
    a.tell(kWork);
    EXPECT_TRUE(both_work()) << describe();
    expect_no_overlap();
}

TEST_P(PoolsTest, NobodyWakesUpWhileNothingChanges) {
    if (kThreadSanitized) GTEST_SKIP() << "the sanitizer's thread wakes up";
    PoolProcess& a = start(0);
    PoolProcess& b = start(1);
    for (const PoolProcess* process : {&a, &b}) process->tell(kWork);
    ASSERT_TRUE(both_work()) << describe();
    for (const PoolProcess* process : {&a, &b}) process->tell(kRest);
    const auto all = [&] {
        return std::array{activity_of(a.pid()), activity_of(b.pid()), activity_of(daemon_.process().pid())};
    };
    auto before = all();
    ASSERT_TRUE(becomes_true(
        [&] {
            std::this_thread::sleep_for(200ms);
            return std::exchange(before, all()) == before;
        },
        20s))
        << "they never rest";
    std::this_thread::sleep_for(2s);
    EXPECT_EQ(all(), before);
    EXPECT_EQ(before[0].threads, 2) << "the one that was forked, and the one that hears the arbiter";
}

constexpr Kind kKinds[] = {{"Synthetic", "core:4 pu:1", false},
                           {"Real", "", false},
                           {"SyntheticComponents", "core:4 pu:1", true},
                           {"RealComponents", "", true}};
INSTANTIATE_TEST_SUITE_P(Machines, PoolsTest, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace heddle::test
