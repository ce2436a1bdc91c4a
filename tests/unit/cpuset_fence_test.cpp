#include "arbiter/cpuset_fence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>

#include "support/recorded_groups.hpp"

namespace heddle {
namespace {

std::string recorded(const std::string& name) {
    std::ifstream file(HEDDLE_TEST_DATA "/unit/fence/" + name + ".txt");
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Process 100, with a thread 101, is in the group "batch"; 150 has a thread in another group.
class CpusetFenceTest : public testing::TestWithParam<const char*> {
  protected:
    void expect_nothing_left() {
        EXPECT_EQ(groups_.group_of(100), batch_);
        EXPECT_FALSE(groups_.has_group(batch_ + "/heddle-fence-ours-100"));
        if (!unified_) return;
        EXPECT_EQ(groups_.content(batch_ + "/cgroup.subtree_control").find("cpuset"), std::string::npos);
    }

    const bool unified_ = GetParam() == std::string_view("v2");
    test::RecordedGroups groups_{recorded(GetParam())};
    const std::string top_ = unified_ ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpuset";
    const std::string batch_ = top_ + "/batch";
    std::optional<CpusetFence> fence_{std::in_place, groups_, "ours"};
};

TEST_P(CpusetFenceTest, HoldsAProcessInAChildOfItsOwnGroup) {
    EXPECT_EQ(fence_->missing(), "");
    EXPECT_EQ(fence_->hold(100, {1, 2}), "");
    const std::string held = batch_ + "/heddle-fence-ours-100";
    EXPECT_TRUE(fence_->holds(100));
    EXPECT_EQ(groups_.group_of(100), held);
    EXPECT_EQ(groups_.content(held + "/cpuset.cpus"), "1-2");
    if (!unified_) {
        EXPECT_EQ(groups_.content(held + "/cpuset.mems"), "0-1\n") << "as the group above";
        EXPECT_EQ(groups_.content(held + "/cpuset.sched_load_balance"), "0");
    }
    fence_->let_go(100);
    EXPECT_FALSE(fence_->holds(100));
    expect_nothing_left();
}

TEST_P(CpusetFenceTest, ChangesTheCpusOfOneThatIsHeldAndNothingElse) {
    ASSERT_EQ(fence_->hold(100, {1}), "");
    groups_.log.clear();
    EXPECT_EQ(fence_->hold(100, {1, 3}), "");
    EXPECT_EQ(fence_->hold(100, {1, 3}), "") << "which is what it has";
    EXPECT_EQ(groups_.log, std::vector<std::string>{batch_ + "/heddle-fence-ours-100/cpuset.cpus < 1,3"});
}

TEST_P(CpusetFenceTest, PutsEverybodyBackAtItsEnd) {
    ASSERT_EQ(fence_->hold(100, {1}), "");
    fence_.reset();
    expect_nothing_left();
}

TEST_P(CpusetFenceTest, AForkedProcessComesOutWithTheOneThatForkedIt) {
    ASSERT_EQ(fence_->hold(100, {1}), "");
    groups_.fork(100, 102);
    groups_.end(100);
    fence_->let_go(100);
    EXPECT_EQ(groups_.group_of(102), batch_);
    EXPECT_FALSE(groups_.has_group(batch_ + "/heddle-fence-ours-100"));
}

TEST_P(CpusetFenceTest, AForkedProcessThatRegistersIsOnItsOwn) {
    ASSERT_EQ(fence_->hold(100, {1}), "");
    groups_.fork(100, 102);
    fence_->admit(100);
    fence_->admit(10);
    fence_->admit(102);
    EXPECT_NE(groups_.group_of(100), batch_) << "it is still held itself";
    EXPECT_EQ(groups_.group_of(10), top_) << "it was never in a group of ours";
    EXPECT_EQ(groups_.group_of(102), batch_);
}

TEST_P(CpusetFenceTest, AForkedProcessCanBeHeldItselfAndComesOutWhereAllCameFrom) {
    ASSERT_EQ(fence_->hold(100, {1}), "");
    groups_.fork(100, 102);
    ASSERT_EQ(fence_->hold(102, {2}), "");
    EXPECT_EQ(groups_.group_of(102), batch_ + "/heddle-fence-ours-102");
    fence_->let_go(100);
    EXPECT_EQ(groups_.group_of(100), batch_);
    fence_->let_go(102);
    EXPECT_EQ(groups_.group_of(102), batch_);
    expect_nothing_left();
}

TEST_P(CpusetFenceTest, AGroupThatFillsFasterThanItIsEmptiedIsRemovedLater) {
    ASSERT_EQ(fence_->hold(100, {1}), "");
    groups_.failure = [](const std::string& call) { return call.starts_with("remove ") ? EBUSY : 0; };
    fence_->let_go(100);
    EXPECT_FALSE(fence_->holds(100));
    groups_.failure = [](const std::string&) { return 0; };
    fence_.reset();
    expect_nothing_left();
}

TEST_P(CpusetFenceTest, WhateverFailsTheProcessStaysWhereItWas) {
    ASSERT_EQ(fence_->hold(100, {1}), "");
    fence_->let_go(100);
    const auto moved = std::ranges::find_if(
        groups_.log, [](const std::string& call) { return call.ends_with("cgroup.procs < 100"); });
    const std::vector<std::string> calls(groups_.log.begin(), moved + 1);
    ASSERT_GE(calls.size(), 4U);
    for (const std::string& failing : calls)
        for (const int error : {EPERM, EACCES, EBUSY, ENOSPC, EOPNOTSUPP}) {
            groups_.failure = [&](const std::string& call) { return call == failing ? error : 0; };
            const std::string problem = fence_->hold(100, {1});
            if (failing.find("sched_load_balance") != std::string::npos) {
                EXPECT_EQ(problem, "") << "it works without";
                groups_.failure = [](const std::string&) { return 0; };
                fence_->let_go(100);
            } else {
                EXPECT_NE(problem.find(strerror(error)), std::string::npos) << failing << ": " << problem;
            }
            EXPECT_FALSE(fence_->holds(100));
            expect_nothing_left();
        }
}

TEST_P(CpusetFenceTest, WhoseThreadsAreInSeveralGroupsIsLeftAlone) {
    EXPECT_EQ(fence_->hold(150, {1}), "its threads are in groups of their own");
    EXPECT_EQ(groups_.group_of(150), batch_);
    EXPECT_TRUE(groups_.log.empty());
}

TEST_P(CpusetFenceTest, WhoIsGoneIsNotHeld) {
    EXPECT_NE(fence_->hold(999, {1}), "");
    EXPECT_TRUE(groups_.log.empty());
}

TEST_P(CpusetFenceTest, RemovesWhatAKilledOneLeftAndNothingElse) {
    fence_->remove_leftovers();
    const std::string group = unified_ ? top_ + "/left" : batch_;
    EXPECT_EQ(groups_.group_of(200), group);
    EXPECT_EQ(groups_.group_of(201), group);
    EXPECT_FALSE(groups_.has_group(group + "/heddle-fence-ours-200"));
    EXPECT_EQ(groups_.group_of(300), group + "/heddle-fence-theirs-300");
    EXPECT_EQ(groups_.group_of(100), batch_);
    EXPECT_EQ(groups_.group_of(10), top_);
}

TEST_P(CpusetFenceTest, WithoutATagOrTheRightToWriteThereIsNone) {
    groups_.failure = [](const std::string& call) { return call.starts_with("write ") ? EACCES : 0; };
    EXPECT_EQ(fence_->missing(), top_ + " is not writable");
    fence_->remove_leftovers();
    EXPECT_TRUE(groups_.log.empty());
    CpusetFence none(groups_, "");
    EXPECT_NE(none.hold(100, {1}), "");
    EXPECT_TRUE(groups_.log.empty());
}

INSTANTIATE_TEST_SUITE_P(Trees, CpusetFenceTest, testing::Values("v1", "v2"),
                         [](const auto& tree) { return std::string(tree.param); });

TEST(CpusetFenceWithout, AControllerInTheGroupOfTheProcess) {
    test::RecordedGroups groups(recorded("v2"));
    CpusetFence fence(groups, "ours");
    EXPECT_EQ(fence.hold(400, {1}), "/sys/fs/cgroup/plain has no cpuset controller");
    EXPECT_EQ(groups.group_of(400), "/sys/fs/cgroup/plain");
    EXPECT_FALSE(groups.has_group("/sys/fs/cgroup/plain/heddle-fence-ours-400"));
}

TEST(CpusetFenceWithout, AnyHierarchy) {
    test::RecordedGroups groups("== line\n0::\n== top\n/sys/fs/cgroup\n");
    CpusetFence fence(groups, "ours");
    EXPECT_EQ(fence.missing(), "no cpuset hierarchy is mounted");
    EXPECT_EQ(fence.hold(1, {1}), "no cpuset hierarchy is mounted");
}

}  // namespace
}  // namespace heddle
