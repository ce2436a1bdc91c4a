// ArbiterTest: the arbiter as a state machine, with a clock of the test's own and clients that obey at once.
//
// Owned by one thread of a test.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "arbiter/arbiter.hpp"

namespace heddle::test {

class ArbiterTest : public testing::Test {
  protected:
    void start(std::string_view topology, std::string_view policy = "proportional") {
        arbiter_ = std::make_unique<Arbiter>(Machine::synthetic(topology), make_policy(policy),
                                             ArbiterLimits{}, now_);
    }
    ClientId join(int demand, const CpuSet& allowed = {}, int weight = 1, const CpuSet& owned = {}) {
        Registration registration;
        registration.name = "test";
        registration.demand = demand;
        registration.allowed = allowed;
        registration.weight = weight;
        registration.owned = owned;
        ClientId id;
        EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNone);
        settle();
        return id;
    }
    /// Every client obeys at once.
    virtual void settle() {
        for (auto actions = arbiter_->take_actions(); !actions.empty(); actions = arbiter_->take_actions())
            for (const auto& action : actions) {
                if (const auto* fence = std::get_if<Fence>(&action)) fences_.push_back(*fence);
                if (const auto* event = std::get_if<Event>(&action))
                    moves_ += event->kind == Event::Kind::kCpu;
                const auto* publish = std::get_if<Publish>(&action);
                if (publish == nullptr) continue;
                published_[publish->client] = *publish;
                if (obedient_) arbiter_->obeyed(publish->client, publish->epoch, now_);
            }
        EXPECT_EQ(arbiter_->check(), "");
    }
    void show(ClientId client, int demand, bool urgent = false) {
        arbiter_->observe(client, demand, now_, urgent, now_);
        settle();
    }
    int held(ClientId client) { return published_[client].cpus.count(); }

    Time now_{std::chrono::hours(1)};
    std::unique_ptr<Arbiter> arbiter_;
    std::map<ClientId, Publish> published_;
    std::vector<Fence> fences_;
    bool obedient_ = true;
    int moves_ = 0;
};

}  // namespace heddle::test
