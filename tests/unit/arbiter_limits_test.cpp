// What the control groups of a client's process, and who binds it from outside, allow it.
#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

class ArbiterLimitsTest : public test::ArbiterTest {};

TEST_F(ArbiterLimitsTest, AClientStaysWithinWhatItsGroupsAllow) {
    start("core:8 pu:1");
    const ClientId a = join(8, CpuSet::parse("0-5"));
    const ClientId b = join(8);
    arbiter_->limit(a, {.cpuset = CpuSet::parse("4-7")}, now_);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("4-5"));
    EXPECT_EQ(held(b), 6);
    arbiter_->limit(a, {.quota = 1}, now_);
    settle();
    EXPECT_EQ(held(a), 1);
    EXPECT_EQ(held(b), 7);
    arbiter_->limit(a, {.cpuset = CpuSet::parse("6-7")}, now_);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("6-7")) << "the kernel moved it there";
    arbiter_->limit(a, {}, now_);
    settle();
    EXPECT_EQ(held(a), 4);
}

TEST_F(ArbiterLimitsTest, AClientStaysWithinTheAffinityThatItIsGiven) {
    start("core:8 pu:1");
    const ClientId a = join(8, CpuSet::parse("0-5"));
    const ClientId b = join(8);
    arbiter_->limit(a, {.affinity = CpuSet::parse("0-1")}, now_);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("0-1"));
    EXPECT_EQ(held(b), 6);
    arbiter_->limit(a, {.cpuset = CpuSet::parse("1-7"), .affinity = CpuSet::parse("0-1")}, now_);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet{1});
    arbiter_->limit(a, {.affinity = CpuSet::parse("7")}, now_);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet{7}) << "it runs there and nowhere else";
    arbiter_->limit(a, {.affinity = CpuSet::parse("0-7")}, now_);
    settle();
    EXPECT_EQ(held(a), 4);
    EXPECT_TRUE(CpuSet::parse("0-5").contains(published_[a].cpus)) << "it had no others when it came";
}

}  // namespace
}  // namespace heddle
