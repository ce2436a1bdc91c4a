// The arbiter against many simulated clients that crash, stop, lie and change their minds, on a clock of its
// own. After every event every CPU has at most one holder, none is lost, and no two honest clients run on
// one; once everybody behaves, nobody lacks a CPU that is free and that it may use.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "arbiter/arbiter.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

struct SimulatedClient {
    CpuSet told;     // its grant as last published
    CpuSet running;  // where its threads are: may include CPUs it was asked to leave
    uint32_t epoch = 0;
    bool stopped = false;
    bool lied = false;  // said that it left where it had not
    int demand = 0;
    CpuSet allowed;
};

class Simulation {
  public:
    Simulation(uint32_t seed, std::string_view topology, std::string_view policy)
        : random_(seed),
          machine_(Machine::synthetic(topology)),
          arbiter_(machine_, make_policy(policy), ArbiterLimits{.clients = 40}, now_) {}

    void run(int events) {
        for (int i = 0; i < events && !testing::Test::HasFatalFailure(); ++i) {
            step();
            deliver();
            verify();
        }
        calm_down();
    }

  private:
    int below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
    int cpus() const { return machine_.cpus().count(); }
    ClientId any_client() {
        auto place = clients_.begin();
        std::advance(place, below(static_cast<int>(clients_.size())));
        return place->first;
    }

    void step() {
        now_ += Nanoseconds(below(3'000'000));
        const int what = below(100);
        if (clients_.empty() || what < 6) return join();
        const ClientId id = any_client();
        SimulatedClient& client = clients_[id];
        if (what < 10) {
            arbiter_.leave(id, true, now_);
            clients_.erase(id);
        } else if (what < 14) {
            client.stopped = !client.stopped;
        } else if (what < 60) {
            client.demand = below(cpus() + 2);
            arbiter_.observe(id, client.demand, now_ - Nanoseconds(below(3'000'000)), below(2) == 0, now_);
        } else if (what < 75) {
            if (!client.stopped) obey(id);
        } else if (what < 78) {
            client.lied = true;
            arbiter_.obeyed(id, client.epoch + static_cast<uint32_t>(below(7)) - 3, now_);
        } else if (what < 79) {
            arbiter_.set_cpus(below(3) == 0 ? machine_.cpus() : CpuSet::range(below(cpus()), cpus()), now_);
        } else if (what < 82) {
            arbiter_.set_limits(id, below(4), below(2) * 4, 1 + below(1000), now_);
        } else {
            tick();
        }
    }
    void join() {
        Registration registration;
        registration.demand = below(6);
        registration.user = static_cast<UserId>(below(3));
        if (below(4) == 0) registration.allowed = CpuSet::range(below(cpus()), cpus());
        if (below(20) == 0) registration.held = CpuSet{below(cpus())};
        if (arbiter_.policy().has_owners()) registration.owned = CpuSet{below(cpus())};
        ClientId id;
        if (arbiter_.join(registration, now_, id) != Refusal::kNone) return;
        clients_[id].demand = registration.demand;
        clients_[id].allowed = registration.allowed.empty() ? machine_.cpus() : registration.allowed;
    }
    void obey(ClientId id) {
        SimulatedClient& client = clients_[id];
        client.running = client.told;
        arbiter_.obeyed(id, client.epoch, now_);
    }
    void tick() {
        const auto deadline = arbiter_.next_deadline();
        if (!deadline) return;
        now_ = std::max(now_, *deadline);
        arbiter_.tick(now_);
    }

    void deliver() {
        for (auto actions = arbiter_.take_actions(); !actions.empty(); actions = arbiter_.take_actions())
            for (const auto& action : actions) {
                if (const auto* publish = std::get_if<Publish>(&action);
                    publish != nullptr && clients_.contains(publish->client)) {
                    SimulatedClient& client = clients_[publish->client];
                    client.told = publish->cpus;
                    client.epoch = publish->epoch;
                    client.running |= publish->cpus;
                } else if (const auto* fence = std::get_if<Fence>(&action);
                           fence != nullptr && clients_.contains(fence->client)) {
                    clients_[fence->client].running &= fence->cpus;
                    arbiter_.fenced(fence->client, true, now_);
                }
            }
    }

    void verify() {
        ASSERT_EQ(arbiter_.check(), "");
        std::map<int, uint32_t> user;
        for (const auto& [id, client] : clients_) {
            if (client.lied) continue;
            for (const int cpu : client.running)
                ASSERT_TRUE(user.emplace(cpu, id.value).second)
                    << "CPU " << cpu << " is used by clients " << user[cpu] << " and " << id.value;
        }
    }

    void calm_down() {
        arbiter_.set_cpus(machine_.cpus(), now_);
        for (int round = 0; round < 1000; ++round) {
            for (auto& [id, client] : clients_) {
                obey(id);
                arbiter_.observe(id, client.demand, now_ - 1h, true, now_);
            }
            now_ += 2ms;
            tick();
            deliver();
        }
        ASSERT_EQ(arbiter_.check(), "");
        const auto clients = arbiter_.clients(now_);
        CpuSet free = machine_.cpus();
        for (const ClientStatus& client : clients) free -= client.granted;
        for (const ClientStatus& client : clients) {
            EXPECT_TRUE(client.leaving.empty());
            if (client.granted.count() >= client.target) continue;
            const CpuSet& allowed = clients_[client.client].allowed;
            EXPECT_FALSE(free.intersects(allowed))
                << "client " << client.client.value << " lacks a CPU that is free";
            for (const ClientStatus& other : clients) {
                const bool could_swap =
                    other.granted.intersects(allowed) && free.intersects(clients_[other.client].allowed);
                EXPECT_FALSE(could_swap)
                    << "client " << other.client.value << " could make room for " << client.client.value;
            }
        }
    }

    std::mt19937 random_;
    Time now_{1h};
    Machine machine_;
    Arbiter arbiter_;
    std::map<ClientId, SimulatedClient> clients_;
};

/// TEST_SEEDS and TEST_EVENTS make a longer campaign of it.
int number(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::atoi(text);
}

class ArbiterSimulation : public testing::TestWithParam<const char*> {};

TEST_P(ArbiterSimulation, NoCoreIsLostOrHeldTwice) {
    const int seeds = number("TEST_SEEDS", 20);
    for (int seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const char* topology = seed % 4 == 0   ? "numa:2 core:16 pu:2"
                               : seed % 4 == 1 ? "core:2 pu:1"
                                               : "package:2 core:4 pu:1";
        Simulation(static_cast<uint32_t>(seed), topology, GetParam()).run(number("TEST_EVENTS", 5000));
        if (HasFailure()) return;
    }
}
INSTANTIATE_TEST_SUITE_P(Policies, ArbiterSimulation, testing::Values("proportional", "owned"),
                         [](const auto& policy) { return std::string(policy.param); });

}  // namespace
}  // namespace heddle
