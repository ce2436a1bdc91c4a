// How the work of a decision grows with clients and CPUs moved: no worse than n log n. Counted in steps
// (base/steps.hpp), so that no clock and no other load has a say.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "arbiter/arbiter.hpp"
#include "base/steps.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

/// How a machine of so many CPUs is shared by so many clients, and what is unusual about them.
struct Crowd {
    const char* policy;
    enum class Kind { kPlain, kOwners, kRanges, kScattered, kGangs, kMinima, kOneJob } kind;
    int cpus;
    int clients;
};

class Load {
  public:
    explicit Load(const Crowd& crowd)
        : crowd_(crowd),
          arbiter_(Machine::synthetic("numa:2 core:" + std::to_string(crowd.cpus / 4) + " pu:2"),
                   make_policy(crowd.policy),
                   ArbiterLimits{.clients = crowd.clients + 1, .clients_per_user = crowd.clients + 1}, now_) {
    }

    /// Steps a decision over n log n + CPUs, for n = clients + CPUs moved: the most of all decisions.
    [[nodiscard]] double worst() const { return worst_; }
    [[nodiscard]] const std::string& worst_in_words() const { return worst_in_words_; }

    /// One has all CPUs; then many come, and get theirs from it all at once.
    void all_from_one() {
        Registration rich;
        rich.demand = 0;
        reserve(rich, 0);
        rich.held = CpuSet::range(0, crowd_.cpus);
        join(rich, 0);
        for (int place = 1; place < crowd_.clients; ++place) join(usual(place), place);
        now_ += ArbiterLimits{}.recovery;
        decide("all from one", [&] { arbiter_.tick(now_); });
        settle();
    }
    /// Half of the machine goes away, and comes back.
    void the_machine_shrinks_and_grows() {
        decide("shrinks", [&] { arbiter_.set_cpus(CpuSet::range(0, crowd_.cpus / 2), now_); });
        settle();
        decide("grows", [&] { arbiter_.set_cpus(CpuSet::range(0, crowd_.cpus), now_); });
        settle();
    }
    /// The others leave everything to one, who dies.
    void all_to_the_others() {
        for (const ClientId id : ids_) demand(id, id == ids_.front() ? crowd_.cpus : 0);
        decide("dies", [&] { arbiter_.leave(ids_.front(), true, now_); });
        settle();
        ids_.erase(ids_.begin());
    }
    /// One has all, is asked for CPUs by the others one after the other, and releases them all in one
    /// message.
    void released_in_one_message() {
        for (const ClientId id : ids_) demand(id, id == ids_.front() ? crowd_.cpus : 0);
        for (const ClientId id : ids_) {
            decide("asks", [&] { arbiter_.observe(id, crowd_.cpus, now_, true, now_); });
            now_ += 10us;
        }
        std::vector<Release> releases;
        for (const int cpu : arbiter_.cpus_of(ids_.front()))
            releases.push_back({cpu, arbiter_.grant_of(cpu).generation, ClientId{0}});
        decide("releases", [&] { arbiter_.released(ids_.front(), releases, crowd_.cpus, now_); });
        settle();
    }
    void whatever_happens(int events) {
        for (int i = 0; i < events; ++i) {
            now_ += 3ms;
            const auto which = static_cast<size_t>(below(static_cast<int>(ids_.size())));
            switch (below(6)) {
                case 0: {
                    const int place = places_[ids_[which]];
                    decide("leaves", [&] { arbiter_.leave(ids_[which], false, now_); });
                    settle();
                    ids_.erase(ids_.begin() + static_cast<long>(which));
                    join(usual(place), place);
                    break;
                }
                case 1:
                    if (const auto deadline = arbiter_.next_deadline()) now_ = std::max(now_, *deadline);
                    decide("tick", [&] { arbiter_.tick(now_); });
                    break;
                default:
                    demand(ids_[which], below(4 * crowd_.cpus / crowd_.clients + 1));
            }
            settle();
        }
    }

  private:
    template <class Decide>
    void decide(const char* what, Decide decide) {
        const long before = steps_taken;
        decide();
        const long steps = steps_taken - before;
        int moved = 0;
        for (auto& action : arbiter_.take_actions()) {
            moved += moved_by(action);
            actions_.push_back(std::move(action));
        }
        const double n = crowd_.clients + moved;
        const double cost = static_cast<double>(steps) / (n * std::log2(n) + crowd_.cpus);
        if (cost <= worst_) return;
        worst_ = cost;
        worst_in_words_ = std::string(what) + ", " + std::to_string(steps) + " steps, " +
                          std::to_string(moved) + " CPUs moved";
    }
    /// CPUs asked back and CPUs that change hands.
    int moved_by(const ArbiterAction& action) {
        if (const auto* event = std::get_if<Event>(&action)) return event->kind == Event::Kind::kCpu ? 1 : 0;
        const auto* publish = std::get_if<Publish>(&action);
        return publish == nullptr
                   ? 0
                   : (std::exchange(granted_[publish->client], publish->cpus) - publish->cpus).count();
    }
    /// Everybody obeys.
    void settle() {
        while (!actions_.empty())
            for (const auto& action : std::exchange(actions_, {}))
                if (const auto* publish = std::get_if<Publish>(&action);
                    publish != nullptr && publish->leaving)
                    decide("obeys", [&] { arbiter_.obeyed(publish->client, publish->epoch, now_); });
    }
    void demand(ClientId id, int cpus) {
        decide("demand", [&] { arbiter_.observe(id, cpus, now_ - 1s, true, now_); });
        settle();
    }
    int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
    Registration usual(int place) {
        const int cpus = crowd_.cpus, clients = crowd_.clients;
        Registration registration;
        registration.demand = 1 + below(2 * cpus / clients + 1);
        registration.weight = 1 + below(1000);
        const int first = below(cpus);
        reserve(registration, place);
        switch (crowd_.kind) {
            case Crowd::Kind::kOwners:
                registration.owned = CpuSet::range(place * cpus / clients, (place + 1) * cpus / clients);
                break;
            case Crowd::Kind::kRanges:
                registration.allowed = CpuSet::range(first, std::min(cpus, first + 1 + below(cpus)));
                break;
            case Crowd::Kind::kScattered:
                for (int cpu = first; cpu < cpus; cpu += 1 + below(5)) registration.allowed.insert(cpu);
                break;
            default:
                break;
        }
        return registration;
    }
    void reserve(Registration& registration, int place) {
        registration.pid = static_cast<uint32_t>(place) + 1;
        if (crowd_.kind == Crowd::Kind::kMinima) registration.min = crowd_.cpus - below(3);
        if (crowd_.kind != Crowd::Kind::kOneJob) return;
        registration.min = crowd_.cpus;
        registration.owned = CpuSet::range(0, crowd_.cpus);
        registration.around = kRoot;
    }
    void join(const Registration& registration, int place) {
        ClientId id;
        Refusal refusal{};
        decide("joins", [&] { refusal = arbiter_.join(registration, now_, id); });
        ASSERT_EQ(refusal, Refusal::kNone);
        ids_.push_back(id);
        places_[id] = place;
        decide("hands over", [&] { arbiter_.hands_over(id, now_); });
        if (crowd_.kind == Crowd::Kind::kGangs && below(4) == 0)
            decide("gang", [&] {
                const int spinning = 1 + below(crowd_.cpus);
                arbiter_.needs_together(id, {spinning, 1 + below(crowd_.cpus)}, now_);
            });
        settle();
    }

    static constexpr uint32_t kRoot = 4711;  // that all of one job were started by

    Crowd crowd_;
    std::mt19937 random_{1};
    Time now_{1h};
    Arbiter arbiter_;
    std::vector<ClientId> ids_;
    std::map<ClientId, int> places_;      // 0 to clients - 1: one that leaves makes room for another
    std::vector<ArbiterAction> actions_;  // taken, and not obeyed yet
    std::map<ClientId, CpuSet> granted_;
    double worst_ = 0;
    std::string worst_in_words_;
};

using Parameters = std::tuple<const char*, Crowd::Kind>;

std::string name_of(const testing::TestParamInfo<Parameters>& crowd) {
    constexpr const char* kNames[] = {"plain", "owners", "ranges", "scattered", "gangs", "minima", "one_job"};
    return std::string(std::get<0>(crowd.param)) + "_" +
           kNames[static_cast<size_t>(std::get<1>(crowd.param))];
}

class RebalanceCost : public testing::TestWithParam<Parameters> {};

/// Most decisions take 7 to 14 steps for each unit of n log n, however large all is. Those that hand out a
/// whole machine to 256 clients take 23, as each client chooses among all CPUs that are free.
constexpr double kMostSteps = 24;

TEST_P(RebalanceCost, GrowsNoWorseThanNLogN) {
    const auto [policy, kind] = GetParam();
    for (const int cpus : {16, 64, 256, 1024})
        for (const int clients : {4, 16, 64, 256}) {
            if (test::kSanitized && cpus > 256) continue;  // minutes, for the same steps
            Load load({policy, kind, cpus, clients});
            load.all_from_one();
            load.the_machine_shrinks_and_grows();
            load.released_in_one_message();
            load.whatever_happens(100);
            load.all_to_the_others();
            EXPECT_GT(load.worst(), 1) << "nothing is counted";
            EXPECT_LT(load.worst(), kMostSteps)
                << cpus << " CPUs, " << clients << " clients: " << load.worst_in_words();
        }
}

INSTANTIATE_TEST_SUITE_P(Crowds, RebalanceCost,
                         testing::Combine(testing::Values("proportional", "owned"),
                                          testing::Values(Crowd::Kind::kPlain, Crowd::Kind::kOwners,
                                                          Crowd::Kind::kRanges, Crowd::Kind::kScattered,
                                                          Crowd::Kind::kGangs, Crowd::Kind::kMinima,
                                                          Crowd::Kind::kOneJob)),
                         name_of);

}  // namespace
}  // namespace heddle
