// The arbiter against many simulated clients that crash, stop, lie, change their minds and hand CPUs to each
// other behind its back, on a clock of its own. After every event every CPU has at most one holder, none is
// lost, and no two honest clients run on one; once everybody behaves, each has what a slow reference says
// (arbiter_reference.hpp).
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "arbiter/arbiter.hpp"
#include "model/arbiter_reference.hpp"
#include "model/simulated_client.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using test::kSanitized;
using test::SimulatedClient;

class Simulation {
  public:
    Simulation(uint32_t seed, std::string_view topology, std::string_view policy)
        : random_(seed),
          machine_(Machine::synthetic(topology)),
          arbiter_(machine_, make_policy(policy),
                   ArbiterLimits{.clients = kMostClients[seed % kMostClients.size()]}, now_) {}

    void run(int events) {
        for (int i = 0; i < events && !testing::Test::HasFailure(); ++i) {
            step();
            deliver();
            verify_users();
            if (!arbiter_.lacking()) nobody_lacked_at_ = now_;
            if (i < kFirst || i % kEach == 0) {
                ASSERT_EQ(arbiter_.check(), "");
                look_for_starving();
            }
            if (i % kCalmEach == kCalmEach - 1) calm_down();
        }
        calm_down();
    }
    [[nodiscard]] int handed_over() const { return handed_over_; }
    /// Of all that was decided.
    [[nodiscard]] size_t digest() const { return digest_; }

  private:
    static constexpr std::array kMostClients{4, 4, 5, 6, 16};
    /// The arbiter's own books, which take long, are checked after each of the first events, then now and
    /// then.
    static constexpr int kFirst = 5'000, kEach = 32;
    /// So often all behave for a while.
    static constexpr int kCalmEach = 200'000;

    int below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
    int cpus() const { return machine_.cpus().count(); }
    ClientId any_client() {
        auto place = clients_.begin();
        std::advance(place, below(static_cast<int>(clients_.size())));
        return place->first;
    }

    /// Deadlines are met late at times.
    void pass_time() {
        now_ += Nanoseconds(below(3'000'000));
        if (const auto deadline = arbiter_.next_deadline(); deadline && *deadline <= now_ && below(4) != 0)
            arbiter_.tick(now_);
    }
    void step() {
        pass_time();
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
            const int min = below(4);
            client.max = below(2) * 4;
            client.weight = 1 + below(1000);
            arbiter_.set_limits(id, min, client.max, client.weight, now_);
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
                digest_ = 31 * digest_ + action.index();
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
        digest_ = 31 * digest_ + static_cast<size_t>(publish.cpus.first() + publish.cpus.count());
        client.epoch = publish.epoch;
        client.has_turn = publish.has_turn;
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
    void verify_users() {
        users_.assign(static_cast<size_t>(machine_.cpus().last() + 1), 0);
        for (const auto& [id, client] : clients_) {
            if (client.lied) continue;
            for (const int cpu : client.running) {
                if (came_from_a_liar(client, cpu)) continue;
                uint32_t& user = users_[static_cast<size_t>(cpu)];
                ASSERT_EQ(user, 0U) << "CPU " << cpu << " is used by clients " << user << " and " << id.value;
                user = id.value;
            }
        }
    }

    void look_for_starving() {
        const auto clients = arbiter_.clients(now_);
        CpuSet spare = arbiter_.cpus();
        const bool turns = std::ranges::any_of(clients_, [](const auto& one) { return one.second.has_turn; });
        for (const ClientStatus& client : clients)
            spare -= client.granted.count() > client.target ? client.granted & client.owned
                                                            : client.granted | client.leaving;
        for (const ClientStatus& client : clients) {
            SimulatedClient& own = clients_[client.client];
            if (turns || now_ < Time(1h + 3s) || client.target <= client.granted.count() ||
                !spare.intersects(own.allowed))
                own.lacks_since.reset();
            else if (!own.lacks_since)
                own.lacks_since = now_;
            else
                ASSERT_LT(now_ - std::max(*own.lacks_since, nobody_lacked_at_), 1s)
                    << "client " << client.client.value << " lacks what others have too many of";
        }
    }

    void calm_down() {
        for (const auto& [id, client] : clients_) {
            arbiter_.needs_together(id, {}, now_);
            arbiter_.limit(id, {}, now_);
        }
        arbiter_.set_cpus(machine_.cpus(), now_);
        for (int round = 0; round < 200; ++round) {
            for (auto& [id, client] : clients_) {
                client.stopped = false;
                go_on(id);
                read_releases(id, {}, true);
                obey(id);
            }
            now_ += 11ms;
            tick();
            deliver();
        }
        ASSERT_EQ(arbiter_.check(), "");
        const auto clients = arbiter_.clients(now_);
        compare_with_reference(clients);
        for (const ClientStatus& owner : clients) {
            const CpuSet usable = owner.owned & clients_[owner.client].allowed;
            EXPECT_GE((owner.granted & owner.owned).count(), std::min(owner.target, usable.count()))
                << "client " << owner.client.value << " has not won back its own CPUs";
        }
    }

    void compare_with_reference(const std::vector<ClientStatus>& clients) {
        std::vector<test::ReferenceClaim> claims;
        std::vector<int> targets;
        CpuSet free = machine_.cpus();
        int served = 0;
        for (const ClientStatus& client : clients) {
            const SimulatedClient& own = clients_[client.client];
            ASSERT_FALSE(client.away);
            claims.push_back({own.demand, client.min, own.max, own.weight, own.allowed, client.owned});
            targets.push_back(client.target);
            served += std::min(client.target, client.granted.count());
            EXPECT_TRUE(client.leaving.empty());
        }
        if (const auto expected = test::reference_targets(claims, cpus(), arbiter_.policy().has_owners()))
            EXPECT_EQ(targets, *expected);
        else
            EXPECT_EQ(std::accumulate(targets.begin(), targets.end(), 0), cpus());
        EXPECT_EQ(served, test::LargestFlow(targets, claims).served());
        for (const ClientStatus& client : clients) free -= client.granted;
        for (size_t i = 0; i < clients.size(); ++i)
            EXPECT_TRUE(clients[i].granted.count() >= claims[i].wanted() ||
                        !free.intersects(claims[i].allowed))
                << "client " << clients[i].client.value << " wants more, and CPUs are free";
    }

    std::mt19937 random_;
    std::vector<uint32_t> users_;  // by CPU; 0: nobody
    Time now_{1h}, nobody_lacked_at_{1h};
    Machine machine_;
    Arbiter arbiter_;
    std::map<ClientId, SimulatedClient> clients_;
    int handed_over_ = 0;
    size_t digest_ = 0;
    uint32_t last_pid_ = 0;
};

/// TEST_SEEDS and TEST_EVENTS make a longer campaign of it, or a shorter one; TEST_FIRST_SEED begins in its
/// middle.
int number(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::atoi(text);
}

constexpr int kParts = 4;

class ArbiterSimulation : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(ArbiterSimulation, NoCoreIsLostOrHeldTwiceAndAllHaveWhatIsTheirs) {
    const auto [policy, part] = GetParam();
    const int seeds = number("TEST_SEEDS", 50),
              events = number("TEST_EVENTS", kSanitized ? 20'000 : 1'000'000);
    int handed_over = 0;
    for (int seed = number("TEST_FIRST_SEED", 1); seed <= seeds; ++seed) {
        if (seed % kParts != part) continue;
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const char* topology = seed % 10 == 0  ? "numa:2 core:16 pu:2"
                               : seed % 4 == 1 ? "core:2 pu:1"
                                               : "package:2 core:4 pu:1";
        Simulation simulation(static_cast<uint32_t>(seed), topology, policy);
        simulation.run(events);
        handed_over += simulation.handed_over();
        if (HasFailure()) return;
    }
    EXPECT_GT(handed_over, seeds / kParts) << "simulations without hand-overs test none";
}

INSTANTIATE_TEST_SUITE_P(Policies, ArbiterSimulation,
                         testing::Combine(testing::Values("proportional", "owned"),
                                          testing::Range(0, kParts)),
                         [](const auto& one) {
                             return std::get<0>(one.param) + std::to_string(std::get<1>(one.param));
                         });

TEST(ArbiterSimulationTest, ASeedDecidesAll) {
    const auto digest = [](uint32_t seed) {
        Simulation simulation(seed, "package:2 core:4 pu:1", "owned");
        simulation.run(20'000);
        return simulation.digest();
    };
    EXPECT_EQ(digest(5), digest(5));
    EXPECT_NE(digest(5), digest(6));
}

}  // namespace
}  // namespace heddle
