#include "topology/cgroup.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "heddle/machine.hpp"
#include "support/fake_groups.hpp"
#include "support/recorded_files.hpp"
#include "topology/allowance_watch.hpp"
#include "topology/thread_affinity.hpp"

using heddle::CgroupLimits;
using heddle::CpuSet;
using heddle::Machine;

namespace {

std::string content(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

std::string described(const CgroupLimits& limits) {
    std::string text = limits.cpuset ? fmt::format("cpuset {}\n", limits.cpuset->to_list()) : "";
    text += fmt::format("quota {}\n", limits.quota_cpus());
    for (const std::string& source : limits.sources) text += fmt::format("source {}\n", source);
    return text;
}

}  // namespace

TEST(Cgroup, ReadsRecordedTreesAsTheyExpect) {
    int trees = 0;
    for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_TEST_DATA "/unit/cgroup")) {
        const heddle::test::RecordedFiles files(content(entry.path()));
        EXPECT_EQ(described(read_cgroup_limits(files)), files.read("expect").value_or("")) << entry.path();
        ++trees;
    }
    EXPECT_EQ(trees, 10);
}

/// As where there are no descriptors left: that it has no limits would be wrong.
TEST(Cgroup, ToldFromWhatIsNotThereIsWhatCannotBeRead) {
    struct Unreadable final : heddle::FileSystem {
        std::optional<std::string> read(const std::string&) const override { return std::nullopt; }
        uint64_t identity(const std::string&) const override { return 1; }
    };
    EXPECT_FALSE(read_cgroup_limits(Unreadable()).is_whole);
    EXPECT_TRUE(read_cgroup_limits(heddle::test::RecordedFiles("")).is_whole);
}

TEST(MemoryRoom, IsTheTightestOfMachineAndGroups) {
    const std::string machine = "== /proc/meminfo\nMemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 700 kB\n";
    const auto room = [](const std::string& recorded) {
        return heddle::read_memory_room(heddle::test::RecordedFiles(recorded));
    };
    EXPECT_EQ(room(""), heddle::MemoryRoom{});
    EXPECT_EQ(room(machine), (heddle::MemoryRoom{1000 << 10, 700 << 10}));
    const std::string unified = machine + "== /proc/self/cgroup\n0::/a/b\n" +
                                "== /proc/self/mountinfo\n1 2 0:3 / /g rw - cgroup2 cgroup2 rw\n" +
                                "== /g/a/memory.max\n500000\n" + "== /g/a/memory.current\n300000\n" +
                                "== /g/a/memory.stat\nanon 1\nfile 90000\nshmem 20000\n";
    EXPECT_EQ(room(unified + "== /g/a/b/memory.max\nmax\n"), (heddle::MemoryRoom{500000, 270000}));
    EXPECT_EQ(room(unified + "== /g/a/b/memory.max\n400000\n== /g/a/b/memory.current\n400000\n"),
              (heddle::MemoryRoom{400000, 0}));
    const std::string old = machine + "== /proc/self/cgroup\n9:memory:/a\n" +
                            "== /proc/self/mountinfo\n1 2 0:3 / /m rw - cgroup cgroup rw,memory\n";
    EXPECT_EQ(room(old + "== /m/a/memory.limit_in_bytes\n9223372036854771712\n"),
              (heddle::MemoryRoom{1000 << 10, 700 << 10}));
    EXPECT_EQ(room(old + "== /m/a/memory.limit_in_bytes\n600000\n== /m/a/memory.usage_in_bytes\n500000\n" +
                   "== /m/a/memory.stat\ncache 100000\nrss 7\n"),
              (heddle::MemoryRoom{600000, 200000}));
}

/// 0: none.
std::vector<CgroupLimits::Quota> quotas(std::vector<CgroupLimits::Quota> all) {
    std::erase_if(all, [](const auto& quota) { return quota.cpus == 0; });
    return all;
}

TEST(Allowance, IsAffinityAndCpusetCutToTheQuota) {
    const Machine machine = Machine::synthetic("package:2 core:2 pu:2");
    const auto usable = [&](const char* affinity, std::optional<CpuSet> cpuset, double quota) {
        return combine(machine, CpuSet::parse(affinity), {std::move(cpuset), quotas({{quota, 0}}), {}})
            .usable.to_list();
    };
    EXPECT_EQ(usable("0-7", std::nullopt, 0), "0-7");
    EXPECT_EQ(usable("0-5", CpuSet::parse("4-7"), 0), "4-5");
    EXPECT_EQ(usable("0-7", std::nullopt, 2), "0-1");
    EXPECT_EQ(usable("0-7", std::nullopt, 2.1), "0-2");
    EXPECT_EQ(usable("0-7", std::nullopt, 0.5), "0");
    EXPECT_EQ(usable("1-7", std::nullopt, 2), "2-3") << "a whole core";
    EXPECT_EQ(usable("0-7", std::nullopt, 1e18), "0-7");
    EXPECT_EQ(usable("0-1023", std::nullopt, 0), "0-7") << "no more than the machine has";
}

TEST(Allowance, GroupsWithQuotasSpreadOverTheMachine) {
    const Machine machine = Machine::synthetic("core:16 pu:1");
    const auto of = [&](uint64_t group) {
        return combine(machine, machine.cpus(), {std::nullopt, quotas({{2, group}}), {}}).usable;
    };
    CpuSet used;
    for (uint64_t group = 1000; group < 4000; group += 50) {  // as folders of the kernel's are numbered
        EXPECT_EQ(of(group).count(), 2);
        EXPECT_EQ(of(group), of(group)) << "every process of a container chooses the same";
        used |= of(group);
    }
    EXPECT_EQ(used, machine.cpus());
}

TEST(Allowance, AGroupChoosesWithinTheChoiceOfItsAncestors) {
    const Machine machine = Machine::synthetic("core:16 pu:1");
    const auto of = [&](std::vector<CgroupLimits::Quota> all) {
        return combine(machine, machine.cpus(), {std::nullopt, std::move(all), {}}).usable;
    };
    for (uint64_t group = 1; group < 50; ++group) {
        const CpuSet inner = of({{4, 7}, {2, group}});
        EXPECT_EQ(inner.count(), 2);
        EXPECT_EQ(inner & of({{4, 7}}), inner);
        EXPECT_EQ(of({{4, 7}, {8, group}}), of({{4, 7}}));
    }
}

TEST(Allowance, IsNeverEmpty) {
    const Machine machine = Machine::synthetic("core:4 pu:1");
    EXPECT_EQ(combine(machine, {0, 1}, {CpuSet{2}, {}, {}}).usable, (CpuSet{0, 1}));
    EXPECT_EQ(combine(machine, {9}, {std::nullopt, {}, {}}).usable, machine.cpus());
    EXPECT_EQ(combine(machine, {}, {std::nullopt, {}, {}}).usable, machine.cpus());
}

TEST(Allowance, EverythingOfASyntheticMachine) {
    const Machine machine = Machine::synthetic("core:300 pu:1");
    EXPECT_EQ(allowance(machine).usable, machine.cpus());
    heddle::AllowanceWatch watch(machine);
    EXPECT_EQ(watch.current().usable, machine.cpus());
    EXPECT_EQ(watch.fd(), -1);
    EXPECT_FALSE(watch.refresh());
}

TEST(Allowance, FollowsTheAffinityOfTheThread) {
    const Machine machine = Machine::detect();
    heddle::AllowanceWatch watch(machine);
    EXPECT_FALSE(watch.refresh());
    const CpuSet all = heddle::thread_affinity();
    if (all.count() < 2) GTEST_SKIP() << "only one CPU may be used here";
    ASSERT_TRUE(heddle::set_thread_affinity(CpuSet{all.last()}));
    EXPECT_TRUE(watch.refresh());
    EXPECT_EQ(watch.current().usable, CpuSet{all.last()});
    EXPECT_EQ(allowance(machine).affinity, CpuSet{all.last()});
    ASSERT_TRUE(heddle::set_thread_affinity(all));
    EXPECT_TRUE(watch.refresh());
}

/// Told of each: of the group's own limits, and of those above it.
TEST(Allowance, FollowsCpusetAndQuotaOfCgroupV2) {
    const Machine machine = Machine::detect();
    if (machine.synthetic()) GTEST_SKIP() << "watches nothing on a described machine";
    const CpuSet all = heddle::thread_affinity() & machine.cpus(), last{all.last()};
    heddle::test::FakeGroups groups("/outer/job");
    groups.set_cpuset("/outer", all.to_list());
    groups.set_cpuset("/outer/job", all.to_list());
    groups.set("/outer", "cpu.max", "max 100000");
    groups.set("/outer/job", "cpu.max", "max 100000");
    heddle::AllowanceWatch watch(machine, groups);
    EXPECT_EQ(watch.current().usable, all);
    EXPECT_EQ(watch.current().quota_cpus, 0);
    EXPECT_FALSE(watch.refresh());
    const auto follows = [&] {
        pollfd ready{watch.fd(), POLLIN, 0};
        const bool told = poll(&ready, 1, 0) == 1;
        return watch.refresh() && told;
    };

    groups.set("/outer/job", "cpu.max", "60000 100000");
    EXPECT_TRUE(follows());
    EXPECT_EQ(watch.current().quota_cpus, 0.6);
    EXPECT_EQ(watch.current().usable.count(), 1);
    groups.set("/outer", "cpu.max", "30000 100000");
    EXPECT_TRUE(follows());
    EXPECT_EQ(watch.current().quota_cpus, 0.3) << "the tightest";
    groups.set("/outer", "cpu.max", "max 100000");
    EXPECT_TRUE(follows());
    groups.set("/outer/job", "cpu.max", "max 100000");
    EXPECT_TRUE(follows());
    EXPECT_EQ(watch.current().usable, all);

    if (all.count() > 1) {
        groups.set_cpuset("/outer/job", last.to_list());
        EXPECT_TRUE(follows());
        EXPECT_EQ(watch.current().cpuset, last);
        EXPECT_EQ(watch.current().usable, last);
        groups.set_cpuset("/outer/job", all.to_list());
        EXPECT_TRUE(follows());
        EXPECT_EQ(watch.current().usable, all);
    }

    // Of a move nobody tells; afterwards the other group's files are watched.
    groups.move_to("/other");
    groups.set_cpuset("/other", all.to_list());
    groups.set("/other", "cpu.max", "50000 100000");
    EXPECT_TRUE(watch.refresh());
    EXPECT_EQ(watch.current().quota_cpus, 0.5);
    groups.set("/outer/job", "cpu.max", "60000 100000");
    EXPECT_FALSE(follows());
    groups.set("/other", "cpu.max", "70000 100000");
    EXPECT_TRUE(follows());
    EXPECT_EQ(watch.current().quota_cpus, 0.7);
}
