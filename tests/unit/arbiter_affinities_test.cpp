// Programs that may run on few CPUs, beside others that may on many.
#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

using test::ArbiterTest;

class ArbiterAffinities : public ArbiterTest {
  protected:
    /// A client that wants one CPU of these, and takes no second one.
    ClientId join_for_one(const CpuSet& allowed) {
        Registration registration;
        registration.demand = registration.max = 1;
        registration.allowed = allowed;
        ClientId id;
        EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNone);
        settle();
        return id;
    }
    CpuSet cpus(ClientId client) { return published_[client].cpus; }
};

TEST_F(ArbiterAffinities, ARowOfMovesMakesRoom) {
    start("core:4 pu:1");
    const ClientId a = join_for_one(CpuSet::parse("0-1"));
    const ClientId b = join_for_one(CpuSet::parse("1-2"));
    const ClientId c = join_for_one(CpuSet::parse("2-3"));
    ASSERT_EQ(cpus(a), CpuSet{0});
    ASSERT_EQ(cpus(b), CpuSet{1});
    ASSERT_EQ(cpus(c), CpuSet{2});
    const ClientId needy = join_for_one({0});
    for (int i = 0; i < 10; ++i) arbiter_->tick(now_ += std::chrono::milliseconds(2)), settle();
    EXPECT_EQ(cpus(needy), CpuSet{0});
    EXPECT_EQ(cpus(a), CpuSet{1});
    EXPECT_EQ(cpus(b), CpuSet{2});
    EXPECT_EQ(cpus(c), CpuSet{3});
}

TEST_F(ArbiterAffinities, ProgramsThatShareOneCpuTakeNoneOfTheOthers) {
    start("core:8 pu:1");
    std::vector<ClientId> bound;
    for (int i = 0; i < 8; ++i) bound.push_back(join(1, {7}));
    const ClientId a = join(8), b = join(8);
    for (int i = 0; i < 10; ++i) arbiter_->tick(now_ += std::chrono::milliseconds(2)), settle();
    int served = 0;
    for (const ClientId one : bound) served += held(one);
    EXPECT_EQ(served, 1);
    EXPECT_EQ(held(a) + held(b), 7);
    EXPECT_GE(std::min(held(a), held(b)), 3);
    // Whoever comes and may use those has his part of them.
    const ClientId late = join(8);
    EXPECT_GE(held(late), 1);
}

/// The owner has a right to one of its two, and keeps the one that the other cannot use.
TEST_F(ArbiterAffinities, AnOwnerGivesUpThatOneOfItsOwnWhichIsOfUse) {
    start("package:2 core:2 pu:1", "owned");
    const ClientId owner = join(2, {}, 1, CpuSet::parse("2-3"));
    show(owner, 1, true);
    const ClientId others = join(2, CpuSet::parse("0-1"));
    ASSERT_EQ(held(others), 2);
    for (const int cpu : {2, 3}) {
        const ClientId needy = join_for_one({cpu});
        EXPECT_EQ(cpus(needy), CpuSet{cpu});
        EXPECT_EQ(cpus(owner), CpuSet{5 - cpu});
        arbiter_->leave(needy, false, now_);
        settle();
        show(owner, 2, true);
        show(owner, 1, true);
    }
}

}  // namespace
}  // namespace heddle
