// Clients that hand CPUs over to each other, without the arbiter, and those that do not.
#include <algorithm>

#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

class ArbiterHandoverTest : public test::ArbiterTest {
  protected:
    ClientId join_and_hand_over(int demand) {
        const ClientId client = join(demand);
        arbiter_->hands_over(client, now_);
        handing_over_.push_back(client);
        settle();
        return client;
    }
    /// As settle(); those that hand over release what they leave to whom the arbiter has named.
    void settle() override {
        bool moved = true;
        for (int round = 0; moved && round < 50; ++round) {
            moved = false;
            for (auto actions = arbiter_->take_actions(); !actions.empty();
                 actions = arbiter_->take_actions())
                for (const auto& action : actions) note(action);
            for (auto& [client, page] : published_) {
                if (!page.leaving) continue;
                page.leaving = false;
                moved = true;
                if (std::ranges::find(handing_over_, client) != handing_over_.end()) release(client, page);
                arbiter_->obeyed(client, page.epoch, now_);
            }
        }
        EXPECT_EQ(arbiter_->check(), "");
    }
    void tick_often() {
        for (int i = 0; i < 20; ++i) {
            now_ += 2ms;
            arbiter_->tick(now_);
            settle();
        }
    }

  private:
    void note(const ArbiterAction& action) {
        if (const auto* named = std::get_if<NameSuccessor>(&action))
            named_[named->holder][named->cpu] = {named->cpu, named->generation, named->successor};
        if (const auto* publish = std::get_if<Publish>(&action)) published_[publish->client] = *publish;
    }
    void release(ClientId client, const Publish& page) {
        std::vector<Release> releases;
        for (const auto& [cpu, release] : named_[client])
            if (!page.cpus.contains(cpu)) releases.push_back(release);
        arbiter_->released(client, releases, arbiter_->cpus().count(), now_);
        for (const Release& release : releases) named_[client].erase(release.cpu);
    }

    std::vector<ClientId> handing_over_;
    std::map<ClientId, std::map<int, Release>> named_;
};

TEST_F(ArbiterHandoverTest, TwoDoNotPassToEachOtherWhatAThirdWasPromised) {
    for (const char* topology : {"core:4 pu:1", "core:16 pu:1"}) {
        start(topology);
        const int cpus = arbiter_->cpus().count();
        join_and_hand_over(cpus);
        join_and_hand_over(cpus);
        const ClientId third = join(cpus);
        tick_often();
        EXPECT_GE(held(third), cpus / 4) << topology;
    }
}

TEST_F(ArbiterHandoverTest, AnOwnerThatDoesNotHandOverWinsItsCpusBack) {
    start("core:4 pu:1", "owned");
    join_and_hand_over(4);
    join_and_hand_over(4);
    const ClientId owner = join(2, {}, 1, CpuSet::parse("0-1"));
    tick_often();
    EXPECT_EQ(published_[owner].cpus, CpuSet::parse("0-1"));
}

/// CPUs that others had lent were taken for it.
TEST_F(ArbiterHandoverTest, ARegistrationThatIsRefusedLeavesNoCpuIdle) {
    start("core:4 pu:1");
    const ClientId client = join(4);
    std::vector<Release> lent;
    for (int cpu = 1; cpu < 4; ++cpu) lent.push_back({cpu, arbiter_->grant_of(cpu).generation, ClientId{0}});
    arbiter_->released(client, lent, 4, now_, true);
    Registration registration;
    registration.demand = 1;
    registration.owned = CpuSet::parse("7-9");
    ClientId refused;
    EXPECT_EQ(arbiter_->join(registration, now_, refused), Refusal::kNotThere);
    settle();
    EXPECT_EQ(arbiter_->cpus_of(client).count(), 4);
}

}  // namespace
}  // namespace heddle
