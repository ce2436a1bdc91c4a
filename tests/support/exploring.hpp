// How a test says that a scenario holds along every branch, and that a planted fault does not escape it.
#pragma once

#include <gtest/gtest.h>

#include "support/explorer.hpp"

namespace heddle::test {

using Scenario = void (*)(Explorer&);

inline void expect_holds(Scenario scenario, Bounds bounds = {}) {
    Explorer explorer(bounds);
    const Explored explored = explorer.explore(scenario);
    EXPECT_EQ(explored.problem, "");
    EXPECT_TRUE(explored.complete) << "not all was explored in " << explored.runs << " runs";
    EXPECT_GT(explored.runs, 10) << "the threads have nothing to do with each other";
    testing::Test::RecordProperty("runs", static_cast<int>(explored.runs));
}

inline void expect_found(Scenario scenario, Fault fault, Bounds bounds = {}) {
    Explorer explorer(bounds, fault);
    const Explored explored = explorer.explore(scenario);
    EXPECT_NE(explored.problem, "") << "fault " << static_cast<int>(fault) << ": nothing went wrong in "
                                    << explored.runs << " runs";
}

}  // namespace heddle::test
