#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/steps.hpp"
#include "heddle/machine.hpp"

using heddle::CpuSet;
using heddle::Machine;

namespace {

std::string trimmed(const std::string& text) {
    const size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

int distance_to(const Machine& machine, const CpuSet& anchor, int cpu) {
    int nearest = 5;
    for (const int other : anchor) nearest = std::min(nearest, machine.distance(other, cpu));
    return nearest;
}

CpuSet random_set(int cpus) {
    CpuSet set;
    for (int cpu = 0; cpu < cpus; ++cpu)
        if (*rc::gen::arbitrary<bool>()) set.insert(cpu);
    return set;
}

}  // namespace

TEST(Placement, FollowsTheTable) {
    std::ifstream file(HEDDLE_TEST_DATA "/unit/topology/placement.txt");
    int cases = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream parts(line);
        std::string field[5];
        for (std::string& part : field) {
            std::getline(parts, part, ';');
            part = trimmed(part);
        }
        const Machine machine = Machine::synthetic(field[0]);
        const CpuSet chosen =
            machine.nearest(CpuSet::parse(field[1]), CpuSet::parse(field[2]), std::stoi(field[3]));
        EXPECT_EQ(chosen.to_list(), field[4]) << line;
        ++cases;
    }
    EXPECT_GT(cases, 30);
}

TEST(Placement, NeverLeavesANearerCpuForAFartherOne) {
    const Machine machine = Machine::synthetic("package:2 numa:2 core:3 pu:2");
    const bool holds = rc::check([&] {
        const CpuSet anchor = random_set(24);
        const CpuSet from = random_set(26);
        const int count = *rc::gen::inRange(0, 26);
        const CpuSet chosen = machine.nearest(anchor, from, count);
        const CpuSet available = from & machine.cpus();
        RC_ASSERT(available.contains(chosen));
        RC_ASSERT(chosen.count() == std::min(count, available.count()));
        int farthest = 0;
        for (const int cpu : chosen) farthest = std::max(farthest, distance_to(machine, anchor, cpu));
        if (anchor.empty()) return;
        for (const int cpu : available - chosen) RC_ASSERT(distance_to(machine, anchor, cpu) >= farthest);
    });
    EXPECT_TRUE(holds);
}

TEST(Placement, TakesOnePackageAndOneNodeWhereOneSuffices) {
    const Machine machine = Machine::synthetic("package:2 numa:2 core:3 pu:2");
    const auto units_with = [&](const CpuSet& set, int heddle::CpuPlace::*unit) {
        std::vector<int> cpus(4);
        for (const int cpu : set) ++cpus[static_cast<size_t>(machine.place(cpu).*unit)];
        return cpus;
    };
    const bool holds = rc::check([&] {
        const CpuSet from = random_set(24);
        const int count = *rc::gen::inRange(1, 13);
        const CpuSet chosen = machine.nearest({}, from, count);
        for (const auto unit : {&heddle::CpuPlace::package, &heddle::CpuPlace::numa}) {
            const auto room = units_with(from, unit);
            const auto used = units_with(chosen, unit);
            if (*std::ranges::max_element(room) >= count)
                RC_ASSERT(std::ranges::count_if(used, [](int n) { return n > 0; }) == 1);
        }
    });
    EXPECT_TRUE(holds);
}

/// Counted in steps (base/steps.hpp), so that no clock and no other load has a say.
TEST(Placement, LooksAtEachOfAThousandCpusAFewTimesOnly) {
    const Machine machine = Machine::synthetic("package:4 numa:4 core:32 pu:2");
    ASSERT_EQ(machine.cpus().count(), 1024);
    const CpuSet odd = [&] {
        CpuSet set;
        for (int cpu = 1; cpu < 1024; cpu += 2) set.insert(cpu);
        return set;
    }();
    const long before = heddle::steps_taken;
    constexpr int kCalls = 500;
    int taken = 0;
    for (int i = 0; i < kCalls; ++i) {
        taken += machine.nearest({}, machine.cpus(), 4).count();
        taken += machine.nearest(CpuSet{i, i + 3}, odd, 3).count();
    }
    EXPECT_EQ(taken, 7 * kCalls);
    const long each = (heddle::steps_taken - before) / (2 * kCalls);
    EXPECT_GT(each, 0) << "this build counts none";
    EXPECT_LE(each, 2L * machine.cpus().count());
}
