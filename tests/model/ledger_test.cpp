// Random histories: the Ledger and its slow twin get the same calls and must agree on every answer, every
// action and every CPU, and the Ledger's books must balance after each call.
#include "cores/ledger.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "heddle/error.hpp"
#include "ledger_model.hpp"
#include "support/ledger_call.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace heddle;
using test::Call;
using test::LedgerModel;

struct Setting {
    const char* machine;
    int members;
    int calls;
    LedgerLimits limits;
    bool shared = false;  // CPUs come and go
};

class History {
  public:
    History(const Setting& setting, uint32_t seed)
        : setting_(setting),
          random_(seed),
          machine_(Machine::synthetic(setting.machine)),
          ledger_(machine_, setting.limits),
          model_(machine_, static_cast<size_t>(setting.limits.requests_per_cpu),
                 static_cast<size_t>(setting.limits.petitions), setting.limits.lend_after_exit) {
        if (setting.shared && below(2) == 0) share();
        for (int i = 0; i < setting.members; ++i) attach();
        if (setting.shared && !shared_) share();
    }

    void run() {
        for (int i = 0; i < setting_.calls && !testing::Test::HasFailure(); ++i) step();
    }

  private:
    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

    CpuSet some_cpus(int limit) {
        CpuSet set;
        const std::vector<CpuPlace>& places = machine_.places();
        for (int n = below(limit + 1); n > 0; --n)
            set.insert(places[static_cast<size_t>(below(static_cast<int>(places.size())))].cpu);
        if (below(50) == 0) set.insert(machine_.cpus().last() + 1 + below(70));
        return set;
    }
    int some_cpu() {
        if (below(50) == 0) return below(2) == 0 ? -1 - below(3) : machine_.cpus().last() + 1 + below(9);
        const auto n = static_cast<int>(machine_.places().size());
        return machine_.places()[static_cast<size_t>(below(n))].cpu;
    }
    static LedgerModel::Cpus to_model(const CpuSet& set) { return {set.begin(), set.end()}; }

    void attach() {
        const int share = static_cast<int>(machine_.places().size()) / setting_.members;
        const CpuSet owned = below(4) == 0 ? CpuSet{} : some_cpus(2 * share + 1);
        log_ = fmt::format("attach {} as {}", owned.to_list(), next_name_);
        Actions actions;
        const MemberId id = try_attach(owned, actions);
        EXPECT_EQ(id != kNobody, model_.attach(next_name_, to_model(owned))) << log_;
        if (id == kNobody) return;
        ids_.emplace_back(next_name_, id);
        names_[id] = next_name_++;
        compare(actions);
    }

    void share() {
        const CpuSet here = some_cpus(6) & machine_.cpus();
        log_ = "share " + here.to_list();
        shared_ = true;
        Actions actions;
        ledger_.share(here, actions);
        model_.share(to_model(here));
        compare(actions);
    }
    void come_or_go() {
        const CpuSet some = some_cpus(4);
        Actions actions;
        if (below(2) == 0) {
            log_ = "take away " + some.to_list();
            ledger_.take_away(some, actions);
            model_.take_away(to_model(some));
        } else {
            log_ = "bring back " + some.to_list();
            ledger_.bring_back(some, actions);
            model_.bring_back(to_model(some));
        }
        compare(actions);
    }

    MemberId try_attach(const CpuSet& owned, Actions& actions) {
        try {
            return ledger_.attach(std::to_string(next_name_), owned, actions);
        } catch (const Error&) {
            return kNobody;
        }
    }

    void step() {
        if (shared_ && below(5) == 0) return come_or_go();
        if (ids_.empty() || (ids_.size() < static_cast<size_t>(setting_.members) && below(8) == 0))
            return attach();
        const size_t who = static_cast<size_t>(below(static_cast<int>(ids_.size())));
        const auto [name, id] = ids_[who];
        // Leaving and disabling are rare, so that the rest has something to work with.
        size_t verb = static_cast<size_t>(below(static_cast<int>(test::kVerbs.size())));
        const std::string_view drawn = test::kVerbs[verb].name;
        if ((drawn == "detach" || drawn == "disable" || drawn == "set_max_parallelism") && below(4) != 0)
            verb = static_cast<size_t>(below(static_cast<int>(test::kVerbs.size()) - 4));
        const Call call{
            .verb = &test::kVerbs[verb], .number = number_for(test::kVerbs[verb].name), .set = some_cpus(6)};
        log_ = fmt::format("{} {}", name, to_string(call));
        Actions actions;
        const Outcome outcome = make(ledger_, id, call, actions);
        EXPECT_EQ(to_string(outcome), to_string(ask_model(name, call))) << log_;
        compare(actions);
        if (call.verb->name == "detach" && outcome == Outcome::kSuccess) {
            EXPECT_EQ(ledger_.lend(id, actions), Outcome::kPermission);
            ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(who));
        }
    }

    int number_for(std::string_view verb) {
        if (verb == "set_max_parallelism") return below(3) == 0 ? 0 : below(8) - 1;
        if (verb.ends_with("_cpu") || verb == "withdraw") return some_cpu();
        return below(10) - 1;
    }

    Outcome ask_model(int me, const Call& call) {
        constexpr int kMany = LedgerModel::kMany;
        const std::string_view verb = call.verb->name;
        const LedgerModel::Cpus one{call.number};
        const LedgerModel::Cpus set = to_model(call.set);
        const LedgerModel::Cpus all = model_.all();
        if (verb == "lend") return model_.lend_all(me);
        if (verb == "lend_cpu") return model_.lend(me, one);
        if (verb == "lend_cpus") return model_.lend_n(me, call.number);
        if (verb == "lend_cpu_mask") return model_.lend(me, set);
        if (verb == "reclaim") return model_.reclaim_n(me, kMany);
        if (verb == "reclaim_cpu") return model_.reclaim(me, one);
        if (verb == "reclaim_cpus") return model_.reclaim_n(me, call.number);
        if (verb == "reclaim_cpu_mask") return model_.reclaim(me, set);
        if (verb == "acquire") return model_.acquire_n(me, kMany, all);
        if (verb == "acquire_cpu") return model_.acquire_cpu(me, call.number);
        if (verb == "acquire_cpus") return model_.acquire_n(me, call.number, all);
        if (verb == "acquire_cpu_mask") return model_.acquire_set(me, set);
        if (verb == "acquire_cpus_in") return model_.acquire_n(me, call.number, set);
        if (verb == "withdraw") return model_.withdraw(me, call.number);
        if (verb == "borrow") return model_.borrow_n(me, kMany, all);
        if (verb == "borrow_cpu") return model_.borrow_cpu(me, call.number);
        if (verb == "borrow_cpus") return model_.borrow_n(me, call.number, all);
        if (verb == "borrow_cpu_mask") return model_.borrow_n(me, kMany, set);
        if (verb == "return_all") return model_.return_n(me, kMany, all);
        if (verb == "return_cpu") return model_.return_cpu(me, call.number);
        if (verb == "return_cpus") return model_.return_n(me, call.number, all);
        if (verb == "return_cpu_mask") return model_.return_n(me, kMany, set);
        if (verb == "set_max_parallelism") return model_.set_max(me, call.number);
        if (verb == "enable") return model_.enable(me);
        if (verb == "disable") return model_.disable(me);
        if (verb == "detach") return model_.detach(me);
        ADD_FAILURE() << "the model does not know " << verb;
        return Outcome::kPermission;
    }

    void compare(const Actions& actions) {
        EXPECT_EQ(ledger_.check(), "") << log_;
        LedgerModel::Changes changes;
        for (const Action& action : actions.all()) {
            const int name = names_.at(action.member);
            changes.insert({action.cpu, action.kind == Action::Kind::kEnable ? name : -name});
        }
        EXPECT_EQ(net(changes), net(model_.changes())) << log_;
        for (const auto& [cpu, expected] : model_.cpus()) {
            LedgerModel::Cpu found{name_of(ledger_.owner(cpu)),
                                   name_of(ledger_.guest(cpu)),
                                   static_cast<LedgerModel::State>(ledger_.state(cpu)),
                                   {},
                                   ledger_.here(cpu),
                                   ledger_.owner_leaves(cpu)};
            for (const MemberId member : ledger_.requests(cpu)) found.queue.push_back(name_of(member));
            EXPECT_TRUE(found == expected) << "CPU " << cpu << " after " << log_;
        }
        const int demand = shared_ ? ledger_.demand() : model_.demand();  // of others it means nothing
        EXPECT_EQ(demand, model_.demand()) << log_;
        for (const auto& [name, id] : ids_)
            EXPECT_EQ(ledger_.petitioned(id), model_.petitioned(name)) << log_;
    }
    /// A CPU that changes hands twice within one call is announced twice; what counts is where it ends.
    static LedgerModel::Changes net(LedgerModel::Changes changes) {
        for (auto change = changes.begin(); change != changes.end();) {
            const auto opposite = changes.find({change->first, -change->second});
            if (opposite == changes.end()) {
                ++change;
                continue;
            }
            changes.erase(opposite);
            changes.erase(change);
            change = changes.begin();
        }
        return changes;
    }
    int name_of(MemberId id) const { return id == kNobody ? 0 : names_.at(id); }

    Setting setting_;
    std::mt19937 random_;
    Machine machine_;
    Ledger ledger_;
    LedgerModel model_;
    bool shared_ = false;
    int next_name_ = 1;
    std::vector<std::pair<int, MemberId>> ids_;
    std::map<MemberId, int> names_;
    std::string log_;
};

constexpr uint32_t kShare = test::kSanitized ? 20 : 1;  // of the histories

void run_all(const Setting& setting, uint32_t first_seed, uint32_t seeds) {
    seeds = (seeds + kShare - 1) / kShare;
    for (uint32_t seed = first_seed; seed < first_seed + seeds; ++seed) {
        SCOPED_TRACE(fmt::format("{}, {} members, seed {}", setting.machine, setting.members, seed));
        History(setting, seed).run();
        if (testing::Test::HasFailure()) return;
    }
}

TEST(LedgerModel, SmallMachinesManyHistories) {
    run_all({"core:2 pu:1", 2, 500, {}}, 1, 60);
    run_all({"numa:2 core:2 pu:1", 3, 500, {}}, 1000, 300);
    run_all({"numa:2 core:2 pu:2", 5, 500, {}}, 2000, 160);
}

TEST(LedgerModel, FullQueues) {
    run_all({"core:3 pu:1", 14, 500, {.members = 14, .petitions = 6}}, 1, 80);
    run_all({"core:3 pu:1", 6, 500, {.requests_per_cpu = 1, .petitions = 1}}, 100, 40);
}

TEST(LedgerModel, CpusThatStayLentAfterTheirOwner) {
    run_all({"numa:2 core:2 pu:1", 4, 500, {.lend_after_exit = true}}, 1, 80);
}

TEST(LedgerModel, CpusThatComeAndGo) {
    run_all({"core:2 pu:1", 2, 500, {}, true}, 1, 60);
    run_all({"numa:2 core:2 pu:1", 3, 500, {}, true}, 1000, 300);
    run_all({"numa:2 core:2 pu:2", 5, 500, {}, true}, 2000, 160);
    run_all({"core:3 pu:1", 6, 500, {.requests_per_cpu = 1, .petitions = 1}, true}, 3000, 40);
    run_all({"numa:2 core:64 pu:2", 24, 500, {}, true}, 4000, 20);
}

TEST(LedgerModel, A256CpuMachine) {
    run_all({"numa:2 core:64 pu:2", 24, 500, {}}, 1, 20);
}

}  // namespace
