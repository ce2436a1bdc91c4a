// What the control groups of a client's process allow it.
#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

class ArbiterLimitsTest : public test::ArbiterTest {};

TEST_F(ArbiterLimitsTest, AClientStaysWithinWhatItsGroupsAllow) {
    start("core:8 pu:1");
    const ClientId a = join(8, CpuSet::parse("0-5"));
    const ClientId b = join(8);
    arbiter_->limit(a, CpuSet::parse("4-7"), 0, now_);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("4-5"));
    EXPECT_EQ(held(b), 6);
    arbiter_->limit(a, {}, 1, now_);
    settle();
    EXPECT_EQ(held(a), 1);
    EXPECT_EQ(held(b), 7);
    arbiter_->limit(a, CpuSet::parse("6-7"), 0, now_);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("6-7")) << "the kernel moved it there";
    arbiter_->limit(a, {}, 0, now_);
    settle();
    EXPECT_EQ(held(a), 4);
}

}  // namespace
}  // namespace heddle
