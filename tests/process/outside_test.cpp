// Components of two programs and a real daemon: CPUs that one lends are used by the other, and come back.
//
// Both programs are in this process, each with a ledger and a registration of its own.
#include "cores/outside.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "heddle/cores.hpp"
#include "support/daemon.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

const Machine kFour = Machine::synthetic("core:4 pu:1");

/// A program with one component, which leaves at once what it has to, and asks again where it wants all.
class Program {
  public:
    Program(const std::string& arbiter, const std::string& name, const CpuSet& owned)
        : outside_(exchange_, options(arbiter, name, owned)), component_(exchange_, name, owned) {
        (void)component_.on_disable_cpu([this](int cpu) {
            (void)component_.return_cpu(cpu);
            if (wants_all_) (void)component_.acquire_cpus(1);
        });
    }
    void want_all() {
        wants_all_ = true;
        (void)component_.acquire();
    }
    void rest() {
        wants_all_ = false;
        (void)component_.lend();
    }
    Component& component() { return component_; }
    [[nodiscard]] bool joined() const { return outside_.joined(); }
    [[nodiscard]] bool comes_to(const CpuSet& cpus) const {
        return becomes_true([&] { return component_.usable() == cpus; }, 10s);
    }
    [[nodiscard]] bool comes_to(int cpus) const {
        return becomes_true([&] { return component_.usable().count() == cpus; }, 10s);
    }

  private:
    static ArbiterClientOptions options(const std::string& arbiter, const std::string& name,
                                        const CpuSet& owned) {
        ArbiterClientOptions options;
        options.path = arbiter;
        options.name = name;
        options.owned = owned;
        options.allowed = kFour.cpus();
        return options;
    }

    std::atomic<bool> wants_all_ = false;
    Exchange exchange_{kFour};
    Outside outside_;
    Component component_;
};

/// Each has a part of the machine; which is the policy's choice.
bool they_share(Program& a, Program& b) {
    return becomes_true(
        [&] {
            const CpuSet ours = a.component().usable(), theirs = b.component().usable();
            return !ours.empty() && !theirs.empty() && (ours | theirs) == kFour.cpus() &&
                   !ours.intersects(theirs);
        },
        10s);
}

TEST(OutsideOfTwoPrograms, ComponentsShareTheMachine) {
    Daemon daemon({.topology = "core:4 pu:1", .arguments = {}, .variables = {}});
    Program a(daemon.path(), "a", {}), b(daemon.path(), "b", {});
    ASSERT_TRUE(a.joined() && b.joined());
    a.want_all();
    EXPECT_TRUE(a.comes_to(4));
    b.want_all();
    EXPECT_TRUE(they_share(a, b));
    a.rest();
    EXPECT_TRUE(b.comes_to(4));
}

TEST(OutsideOfTwoPrograms, AnOwnerWinsItsOwnBack) {
    Daemon daemon({.topology = "core:4 pu:1", .arguments = {"--policy", "owned"}, .variables = {}});
    Program a(daemon.path(), "a", {0, 1}), b(daemon.path(), "b", {2, 3});
    ASSERT_TRUE(a.comes_to({0, 1}) && b.comes_to({2, 3}));
    for (int round = 0; round < 20; ++round) {
        (void)b.component().acquire();
        (void)a.component().lend();
        ASSERT_TRUE(b.comes_to(kFour.cpus())) << "round " << round;
        (void)a.component().reclaim();
        ASSERT_TRUE(a.comes_to({0, 1}) && b.comes_to({2, 3})) << "round " << round;
    }
}

TEST(OutsideOfTwoPrograms, TheyKeepTheirCpusWhileThereIsNoDaemon) {
    Daemon daemon({.topology = "core:4 pu:1", .arguments = {}, .variables = {}});
    Program a(daemon.path(), "a", {}), b(daemon.path(), "b", {});
    a.want_all();
    b.want_all();
    ASSERT_TRUE(they_share(a, b));
    daemon.process().end();
    EXPECT_TRUE(they_share(a, b));
    ASSERT_TRUE(daemon.start());
    EXPECT_TRUE(they_share(a, b));
    a.rest();
    EXPECT_TRUE(b.comes_to(4));
}

}  // namespace
}  // namespace heddle::test
