// The arbiter against many simulated clients that crash, stop, lie, change their minds and hand CPUs to each
// other behind its back, on a clock of its own. After every event every CPU has at most one holder, none is
// lost, and no two honest clients run on one; once everybody behaves, nobody lacks a CPU that is free and
// that it may use.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "arbiter/arbiter.hpp"
#include "cores/protocol.h"

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
    uint32_t pid = 0;
    UserId user = 0;
    Reservation reserved;
    CpuSet allowed;
    bool hands_over = false;
    std::map<int, std::vector<uint64_t>> successor;  // words of its grant page, by CPU: all of this grant,
                                                     // since a release under way may have read any of them
    std::map<int, uint64_t> lender;                  // the words of its grant page
    std::map<int, uint64_t> release;                 // the words of its client page
    std::map<int, uint64_t> taken;                   // handed to it, and not confirmed by the arbiter yet

    uint32_t generation(int cpu) const {
        const auto place = successor.find(cpu);
        return place == successor.end() ? 0 : heddle_word_generation(place->second.back());
    }
    bool released(int cpu) const {
        const auto place = release.find(cpu);
        return place != release.end() && heddle_word_generation(place->second) == generation(cpu) &&
               heddle_word_client(place->second) != HEDDLE_HELD;
    }
};

class Simulation {
  public:
    Simulation(uint32_t seed, std::string_view topology, std::string_view policy)
        : random_(seed),
          machine_(Machine::synthetic(topology)),
          arbiter_(machine_, make_policy(policy),
                   ArbiterLimits{.clients = 4 + static_cast<int>(seed % 5) * 9}, now_) {}

    void run(int events) {
        for (int i = 0; i < events && !testing::Test::HasFatalFailure(); ++i) {
            step();
            deliver();
            verify();
        }
        calm_down();
    }
    [[nodiscard]] int handed_over() const { return handed_over_; }

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
            read_releases(id, arbiter_.cpus_of(id), false);
            arbiter_.leave(id, true, now_);
            clients_.erase(id);
        } else if (what < 14) {
            client.stopped = !client.stopped;
            if (!client.stopped)
                go_on(id);
            else if (below(2) == 0)
                arbiter_.was_stopped(id, now_);
        } else if (what < 60) {
            client.demand = below(cpus() + 2);
            arbiter_.observe(id, client.demand, now_ - Nanoseconds(below(3'000'000)), below(2) == 0, now_);
        } else if (what < 60 + 8) {
            if (!client.stopped) obey(id);
        } else if (what < 76) {
            if (!client.stopped && client.hands_over) use_pages(id);
        } else if (what < 78) {
            client.lied = true;
            arbiter_.obeyed(id, client.epoch + static_cast<uint32_t>(below(7)) - 3, now_);
        } else if (what < 79) {
            arbiter_.set_cpus(below(3) == 0 ? machine_.cpus() : CpuSet::range(below(cpus()), cpus()), now_);
        } else if (what < 82) {
            arbiter_.set_limits(id, below(4), below(2) * 4, 1 + below(1000), now_);
        } else if (what < 85) {
            const int spinning = below(3) == 0 ? below(cpus() + 2) : 0;
            const int meeting = below(3) == 0 ? below(cpus() + 2) : 0;
            arbiter_.needs_together(id, {spinning, meeting}, now_);
        } else if (what < 87) {
            const auto some = [&] { return below(2) == 0 ? CpuSet{} : CpuSet::range(below(cpus()), cpus()); };
            const CpuSet cpuset = some(), affinity = some();
            arbiter_.limit(id, {cpuset, affinity, below(2) * (1 + below(cpus()))}, now_);
        } else {
            tick();
        }
    }
    void go_on(ClientId id) {
        arbiter_.goes_on(id, now_);
        arbiter_.observe(id, clients_[id].demand, now_, true, now_);
    }
    void join() {
        Registration registration;
        registration.pid = ++last_pid_;
        registration.demand = below(6);
        registration.user = static_cast<UserId>(below(3));
        if (below(4) == 0) registration.allowed = CpuSet::range(below(cpus()), cpus());
        if (below(20) == 0) registration.held = CpuSet{below(cpus())};
        if (arbiter_.policy().has_owners() && below(2) == 0)
            registration.owned = CpuSet::range(below(cpus()), cpus()) & CpuSet::range(0, below(cpus()) + 1);
        if (below(3) == 0) registration.min = below(4);
        if (below(2) == 0 && !clients_.empty()) {  // what a client starts asks for the same
            const SimulatedClient& parent = clients_[any_client()];
            registration.around = parent.pid;
            registration.user = parent.user;
            registration.min = parent.reserved.min;
            registration.owned = parent.reserved.owned;
        }
        ClientId id;
        if (arbiter_.join(registration, now_, id) != Refusal::kNone) return;
        clients_[id].pid = registration.pid;
        clients_[id].user = registration.user;
        clients_[id].reserved = {registration.min, registration.owned};
        clients_[id].demand = registration.demand;
        clients_[id].allowed = registration.allowed.empty() ? machine_.cpus() : registration.allowed;
        if (below(4) == 0) return;
        clients_[id].hands_over = true;
        deliver();
        arbiter_.hands_over(id, now_);
    }
    /// What a client does without the arbiter: release, take back, take, and say that somebody should look.
    void use_pages(ClientId id) {
        SimulatedClient& client = clients_[id];
        switch (below(8)) {
            default:
                for (const int cpu : client.running) {
                    if (client.taken.contains(cpu) || client.generation(cpu) == 0 || below(2) == 0) continue;
                    const auto& words = client.successor[cpu];
                    const uint64_t word = words[static_cast<size_t>(below(static_cast<int>(words.size())))];
                    const uint32_t to = heddle_word_client(word);
                    client.release[cpu] = to != 0 ? word : heddle_word(client.generation(cpu), HEDDLE_LENT);
                    client.running.erase(cpu);
                    if (to != 0 && below(2) == 0 && clients_.contains(ClientId{to}) &&
                        !clients_[ClientId{to}].stopped)
                        take_what_was_handed(ClientId{to});
                    if (below(20) == 0) {  // a liar releases to whom it likes, and stays
                        client.lied = true;
                        client.release[cpu] = heddle_word(client.generation(cpu), any_client().value);
                    }
                    break;
                }
                break;
            case 0:
                for (auto& [cpu, word] : client.release)
                    if (heddle_word_client(word) == HEDDLE_LENT &&
                        heddle_word_generation(word) == client.generation(cpu)) {
                        word = heddle_word(heddle_word_generation(word), HEDDLE_HELD);
                        client.running.insert(cpu);
                    }
                break;
            case 1:
                take_what_was_handed(id);
                break;
            case 2:
                read_releases(id, {}, arbiter_.lacking());
                break;
        }
    }
    void take_what_was_handed(ClientId id) {
        SimulatedClient& client = clients_[id];
        for (const auto& [cpu, word] : client.lender) {
            const auto lender = clients_.find(ClientId{heddle_word_client(word)});
            if (word == 0 || lender == clients_.end() || client.taken.contains(cpu)) continue;
            const uint64_t mine = heddle_word(heddle_word_generation(word), id.value);
            const auto released = lender->second.release.find(cpu);
            if (released == lender->second.release.end() || released->second != mine) continue;
            client.taken[cpu] = word;
            client.running.insert(cpu);
            ++handed_over_;
        }
    }
    /// As Server::read_releases.
    void read_releases(ClientId id, const CpuSet& ending, bool take) {
        SimulatedClient& client = clients_[id];
        const CpuSet leaving = arbiter_.leaving_of(id);
        std::vector<Release> releases;
        for (const int cpu : arbiter_.cpus_of(id)) {
            const CpuGrant& grant = arbiter_.grant_of(cpu);
            if (ending.contains(cpu))
                for (const ClientId successor : grant.successors)
                    if (clients_.contains(successor))
                        clients_[successor].lender[cpu] = heddle_word(grant.generation, 0);
            const auto word = client.release.find(cpu);
            if (word == client.release.end() || heddle_word_generation(word->second) != grant.generation)
                continue;
            const uint32_t to = heddle_word_client(word->second);
            if (to == HEDDLE_HELD || to == HEDDLE_TAKEN) continue;
            if (to != HEDDLE_LENT) {
                releases.push_back({cpu, grant.generation, ClientId{to}});
            } else if (take || leaving.contains(cpu)) {
                word->second = heddle_word(grant.generation, HEDDLE_TAKEN);
                releases.push_back({cpu, grant.generation, ClientId{0}});
            }
        }
        arbiter_.released(id, releases, client.demand, now_);
    }
    void obey(ClientId id) {
        SimulatedClient& client = clients_[id];
        CpuSet stays;
        for (const int cpu : client.running)
            if (client.told.contains(cpu) || client.taken.contains(cpu)) stays.insert(cpu);
        client.running = stays;
        read_releases(id, arbiter_.leaving_of(id), true);
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
                if (const auto* publish = std::get_if<Publish>(&action)) {
                    if (clients_.contains(publish->client)) show(*publish);
                } else if (const auto* fence = std::get_if<Fence>(&action)) {
                    if (!clients_.contains(fence->client)) continue;
                    clients_[fence->client].running &= fence->cpus;
                    read_releases(fence->client, arbiter_.leaving_of(fence->client), true);
                    arbiter_.fenced(fence->client, true, now_);
                } else if (const auto* named = std::get_if<NameSuccessor>(&action)) {
                    if (!clients_.contains(named->holder)) continue;
                    auto& words = clients_[named->holder].successor[named->cpu];
                    const uint64_t word = heddle_word(named->generation, named->successor.value);
                    if (named->successor == ClientId{0}) words.clear();
                    if (!words.empty() &&
                        heddle_word_generation(words.back()) != heddle_word_generation(word))
                        words.clear();
                    words.push_back(word);
                } else if (const auto* lender = std::get_if<NameLender>(&action)) {
                    if (clients_.contains(lender->client)) look_at(*lender);
                }
            }
    }

    void show(const Publish& publish) {
        SimulatedClient& client = clients_[publish.client];
        client.told = publish.cpus;
        client.epoch = publish.epoch;
        for (const int cpu : publish.cpus)
            if (!client.released(cpu)) client.running.insert(cpu);
        confirm(publish.client);
    }
    void look_at(const NameLender& named) {
        clients_[named.client].lender[named.cpu] = heddle_word(named.generation, named.lender.value);
        confirm(named.client);
    }
    void confirm(ClientId id) {
        SimulatedClient& client = clients_[id];
        std::erase_if(client.taken, [&](const auto& entry) {
            const auto& [cpu, word] = entry;
            if (client.told.contains(cpu)) return true;
            if (heddle_word_generation(client.lender[cpu]) == heddle_word_generation(word)) return false;
            // Confirmed and asked back in one breath: it stays there until it obeys.
            if (client.generation(cpu) > heddle_word_generation(word)) return true;
            // Only a liar's word may come to nothing, or that on a CPU that there is no more.
            const auto lender = clients_.find(ClientId{heddle_word_client(word)});
            EXPECT_TRUE(lender == clients_.end() || lender->second.lied || !arbiter_.cpus().contains(cpu))
                << "client " << id.value << " was handed CPU " << cpu << " and lost it";
            client.running.erase(cpu);
            return true;
        });
    }

    /// Until the arbiter has heard of it: a liar can hand one CPU to two others of its user, one after the
    /// other.
    bool came_from_a_liar(const SimulatedClient& client, int cpu) const {
        const auto taken = client.taken.find(cpu);
        if (taken == client.taken.end()) return false;
        const auto lender = clients_.find(ClientId{heddle_word_client(taken->second)});
        return lender != clients_.end() && lender->second.lied;
    }
    void verify() {
        ASSERT_EQ(arbiter_.check(), "");
        std::map<int, uint32_t> user;
        for (const auto& [id, client] : clients_) {
            if (client.lied) continue;
            for (const int cpu : client.running) {
                if (came_from_a_liar(client, cpu)) continue;
                ASSERT_TRUE(user.emplace(cpu, id.value).second)
                    << "CPU " << cpu << " is used by clients " << user[cpu] << " and " << id.value;
            }
        }
    }

    void calm_down() {
        for (const auto& [id, client] : clients_) {
            arbiter_.needs_together(id, {}, now_);
            arbiter_.limit(id, {}, now_);
        }
        arbiter_.set_cpus(machine_.cpus(), now_);
        for (int round = 0; round < 1000; ++round) {
            for (auto& [id, client] : clients_) {
                client.stopped = false;
                go_on(id);
                read_releases(id, {}, true);
                obey(id);
            }
            now_ += 2ms;
            tick();
            deliver();
        }
        ASSERT_EQ(arbiter_.check(), "");
        const auto clients = arbiter_.clients(now_);
        for (const ClientStatus& owner : clients) {
            const CpuSet usable = owner.owned & clients_[owner.client].allowed;
            EXPECT_GE((owner.granted & owner.owned).count(), std::min(owner.target, usable.count()))
                << "client " << owner.client.value << " has not won back its own CPUs";
        }
        CpuSet free = machine_.cpus();
        for (const ClientStatus& client : clients) free -= client.granted;
        for (const ClientStatus& client : clients) {
            EXPECT_TRUE(client.leaving.empty());
            if (client.granted.count() >= client.target) continue;
            const CpuSet& allowed = clients_[client.client].allowed;
            EXPECT_FALSE(free.intersects(allowed))
                << "client " << client.client.value << " lacks a CPU that is free";
            for (const ClientStatus& other : clients) {
                const SimulatedClient& holder = clients_[other.client];
                const bool could_swap =
                    (other.granted - other.owned).intersects(allowed) && free.intersects(holder.allowed);
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
    int handed_over_ = 0;
    uint32_t last_pid_ = 0;
};

/// TEST_SEEDS and TEST_EVENTS make a longer campaign of it; TEST_FIRST_SEED begins in its middle.
int number(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::atoi(text);
}

class ArbiterSimulation : public testing::TestWithParam<const char*> {};

TEST_P(ArbiterSimulation, NoCoreIsLostOrHeldTwice) {
    const int seeds = number("TEST_SEEDS", 20);
    int handed_over = 0;
    for (int seed = number("TEST_FIRST_SEED", 1); seed <= seeds; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const char* topology = seed % 4 == 0   ? "numa:2 core:16 pu:2"
                               : seed % 4 == 1 ? "core:2 pu:1"
                                               : "package:2 core:4 pu:1";
        Simulation simulation(static_cast<uint32_t>(seed), topology, GetParam());
        simulation.run(number("TEST_EVENTS", 5000));
        handed_over += simulation.handed_over();
        if (HasFailure()) return;
    }
    EXPECT_GT(handed_over, seeds) << "simulations without hand-overs test none";
}
INSTANTIATE_TEST_SUITE_P(Policies, ArbiterSimulation, testing::Values("proportional", "owned"),
                         [](const auto& policy) { return std::string(policy.param); });

}  // namespace
}  // namespace heddle
