// The Ledger's slow and obvious twin: maps and sets, every question answered by looking at everything. It
// shares no code with the Ledger but the machine's choice of near CPUs. Written from docs/LEDGER.md.
#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "heddle/cores.hpp"
#include "heddle/machine.hpp"

namespace heddle::test {

class LedgerModel {
  public:
    using Name = int;  // of a member; 0 is nobody
    using Cpus = std::set<int>;
    enum State { kDisabled, kBusy, kLent };
    struct Cpu {
        Name owner = 0, guest = 0;
        State state = kDisabled;
        std::list<Name> queue;
        bool here = true;
        bool owner_leaves = false;
        friend bool operator==(const Cpu&, const Cpu&) = default;
    };
    struct Petition {
        Name member;
        int wanted;
        Cpus allowed;
    };
    /// +name for enable, -name for disable, sorted.
    using Changes = std::multiset<std::pair<int, int>>;

    LedgerModel(Machine machine, size_t queue, size_t petitions, bool lend_after_exit)
        : machine_(std::move(machine)), queue_(queue), petitions_max_(petitions), keep_(lend_after_exit) {
        for (const int cpu : machine_.cpus()) cpus_[cpu];
    }

    bool attach(Name me, const Cpus& owned) {
        for (const int cpu : owned)
            if (!cpus_.count(cpu) || cpus_[cpu].owner != 0) return false;
        begin();
        members_[me] = {};
        for (const int cpu : owned) {
            cpus_[cpu].owner = me;
            cpus_[cpu].state = kBusy;
            if (cpus_[cpu].guest == 0 && cpus_[cpu].here) cpus_[cpu].guest = me;
        }
        finish();
        return true;
    }
    Outcome detach(Name me) {
        if (!members_.count(me)) return Outcome::kPermission;
        begin();
        forget(me);
        for (auto& [cpu, c] : cpus_) {
            if (c.owner == me) {
                c.owner = 0;
                c.owner_leaves = false;
                c.state = keep_ || shared_ ? kLent : kDisabled;
            }
            if (c.guest == me) leave(cpu);
        }
        members_.erase(me);
        finish();
        std::erase_if(changes_, [&](const auto& change) { return change.second == -me; });
        return Outcome::kSuccess;
    }

    Outcome enable(Name me) {
        if (!members_.count(me)) return Outcome::kPermission;
        begin();
        if (members_[me].enabled) return Outcome::kNoUpdate;
        members_[me].enabled = true;
        if (members_[me].max > 0) lend_down_to(me, members_[me].max);
        finish();
        return Outcome::kSuccess;
    }
    Outcome disable(Name me) {
        if (const auto no = refused(me)) return *no;
        members_[me].enabled = false;
        forget(me);
        for (auto& [cpu, c] : cpus_) {
            if (c.owner == me) {
                c.state = kBusy;
                if (c.guest == 0 && c.here) c.guest = me;
            } else if (c.guest == me) {
                leave(cpu);
            }
        }
        finish();
        return Outcome::kSuccess;
    }
    Outcome set_max(Name me, int max) {
        if (const auto no = refused(me)) return *no;
        if (max < 0) return Outcome::kPermission;
        if (members_[me].max == max) return Outcome::kNoUpdate;
        members_[me].max = max;
        if (max > 0) lend_down_to(me, max);
        finish();
        return Outcome::kSuccess;
    }

    Outcome lend(Name me, const Cpus& cpus) {
        if (const auto no = refused(me)) return *no;
        if (!in_machine(cpus)) return Outcome::kPermission;
        for (const int cpu : cpus) lend_one(me, cpu);
        finish();
        return Outcome::kSuccess;
    }
    Outcome lend_all(Name me) {
        if (const auto no = refused(me)) return *no;
        forget(me);
        return lend(me, all());
    }
    Outcome lend_n(Name me, int n) {
        if (const auto no = refused(me)) return *no;
        if (n < 0) return Outcome::kPermission;
        lend_down_to(me, std::max(0, size(usable(me)) - n));
        finish();
        return Outcome::kSuccess;
    }

    Outcome reclaim(Name me, const Cpus& cpus) {
        if (const auto no = refused(me)) return *no;
        for (const int cpu : cpus)
            if (!cpus_.count(cpu) || cpus_[cpu].owner != me) return Outcome::kPermission;
        Outcome outcome = Outcome::kNoUpdate;
        for (const int cpu : cpus) outcome = worse(outcome, reclaim_one(me, cpu));
        finish();
        return outcome;
    }
    Outcome reclaim_n(Name me, int n) {
        if (const auto no = refused(me)) return *no;
        if (n < 0) return Outcome::kPermission;
        Outcome outcome = take_own(me, all(), n);
        outcome = worse(outcome, miss_own(me, all(), n));
        finish();
        return outcome;
    }

    Outcome acquire_cpu(Name me, int cpu) {
        if (const auto no = refused(me)) return *no;
        if (!cpus_.count(cpu)) return Outcome::kPermission;
        Outcome outcome = Outcome::kNoUpdate;
        if (cpus_[cpu].owner == me) {
            outcome = reclaim_one(me, cpu);
        } else {
            outcome = take_one(me, cpu);
            if (outcome != Outcome::kSuccess) outcome = enqueue(me, cpu);
        }
        finish();
        return outcome;
    }
    Outcome acquire_set(Name me, const Cpus& cpus) {
        if (const auto no = refused(me)) return *no;
        if (!in_machine(cpus)) return Outcome::kPermission;
        int n = kMany;
        Outcome outcome = take_own(me, cpus, n);
        outcome = worse(outcome, take_free(me, cpus, n));
        outcome = worse(outcome, miss_own(me, cpus, n));
        for (const int cpu : cpus)
            if (cpus_[cpu].owner != me) outcome = worse(outcome, enqueue(me, cpu));
        finish();
        return outcome;
    }
    Outcome acquire_n(Name me, int n, const Cpus& allowed) {
        if (const auto no = refused(me)) return *no;
        if (n < 0 || !in_machine(allowed)) return Outcome::kPermission;
        if (n == 0) {
            forget(me);
            return Outcome::kSuccess;
        }
        int missing = 0;
        for (const int cpu : allowed) missing += user(cpus_[cpu]) != me;
        n = std::min({n, missing, room(me)});
        Outcome outcome = take_own(me, allowed, n);
        outcome = worse(outcome, take_free(me, allowed, n));
        outcome = worse(outcome, miss_own(me, allowed, n));
        if (n > 0) outcome = worse(outcome, ask(me, n, allowed));
        finish();
        return outcome;
    }
    Outcome withdraw(Name me, int cpu) {
        if (const auto no = refused(me)) return *no;
        if (!cpus_.count(cpu)) return Outcome::kPermission;
        if (!waits(me)) return Outcome::kNoUpdate;
        unask(me, cpu);
        return Outcome::kSuccess;
    }

    Outcome borrow_cpu(Name me, int cpu) {
        if (const auto no = refused(me)) return *no;
        if (!cpus_.count(cpu)) return Outcome::kPermission;
        const Outcome outcome = take_one(me, cpu);
        finish();
        return outcome;
    }
    Outcome borrow_n(Name me, int n, const Cpus& from) {
        if (const auto no = refused(me)) return *no;
        if (n < 0 || !in_machine(from)) return Outcome::kPermission;
        const Outcome outcome = take_free(me, from, n);
        finish();
        return outcome;
    }

    Outcome return_cpu(Name me, int cpu) {
        if (const auto no = refused_to_return(me, {cpu})) return *no;
        if (!cpus_.count(cpu) || !is_on(me, cpu)) return Outcome::kPermission;
        if (user(cpus_[cpu]) == me) return Outcome::kNoUpdate;
        leave_as(me, cpu);
        finish();
        return Outcome::kSuccess;
    }
    Outcome return_n(Name me, int n, const Cpus& from) {
        if (const auto no = refused_to_return(me, from)) return *no;
        if (n < 0 || !in_machine(from)) return Outcome::kPermission;
        Outcome outcome = Outcome::kNoUpdate;
        for (const int cpu : from) {
            if (n == 0 || !is_on(me, cpu) || user(cpus_[cpu]) == me) continue;
            leave_as(me, cpu);
            outcome = Outcome::kSuccess;
            --n;
        }
        finish();
        return outcome;
    }

    void share(const Cpus& here) {
        begin();
        shared_ = true;
        for (auto& [cpu, c] : cpus_) {
            if (c.state != kDisabled) continue;
            c.state = kLent;
            if (c.guest == 0) leave(cpu);
        }
        for (auto& [cpu, c] : cpus_)
            if (here.count(cpu) == 0) go_away(c);
        finish();
    }
    void take_away(const Cpus& cpus) {
        begin();
        for (const int cpu : cpus)
            if (cpus_.count(cpu)) go_away(cpus_[cpu]);
        finish();
    }
    void bring_back(const Cpus& cpus) {
        begin();
        for (const int cpu : cpus) {
            if (!cpus_.count(cpu) || cpus_[cpu].here) continue;
            Cpu& c = cpus_[cpu];
            const bool may =
                c.guest == c.owner || c.owner_leaves || !members_[c.owner].enabled || room(c.owner) > 0;
            c.here = true;
            c.owner_leaves = false;
            if (c.state == kBusy && may) {
                if (c.guest == 0) c.guest = c.owner;
            } else {
                c.state = kLent;
                if (c.guest == 0) leave(cpu);
            }
            tidy();
        }
        finish();
    }
    /// CPUs that the members use or could use now.
    [[nodiscard]] int demand() const {
        int sum = 0;
        for (const auto& [cpu, c] : cpus_)
            sum += c.state == kBusy || (c.here ? c.guest != 0 : !c.queue.empty()) ? 1 : 0;
        for (const Petition& petition : petitions_) sum += petition.wanted;
        return std::min(sum, static_cast<int>(cpus_.size()));
    }

    static constexpr int kMany = 1 << 30;
    [[nodiscard]] const std::map<int, Cpu>& cpus() const { return cpus_; }
    [[nodiscard]] int petitioned(Name me) const {
        int sum = 0;
        for (const Petition& petition : petitions_) sum += petition.member == me ? petition.wanted : 0;
        return sum;
    }
    /// What the last call changed: (cpu, +user) and (cpu, -former user).
    [[nodiscard]] const Changes& changes() const { return changes_; }
    [[nodiscard]] Cpus all() const {
        Cpus set;
        for (const auto& [cpu, c] : cpus_) set.insert(cpu);
        return set;
    }

  private:
    struct Member {
        bool enabled = true;
        int max = 0;
    };

    static Name user(const Cpu& c) {
        if (!c.here) return 0;
        if (c.state == kBusy) return c.owner;
        if (c.state == kLent) return c.guest;
        return 0;
    }
    static int size(const Cpus& set) { return static_cast<int>(set.size()); }
    static Outcome worse(Outcome a, Outcome b) {
        for (const Outcome each : {Outcome::kTooManyRequests, Outcome::kNoted, Outcome::kSuccess})
            if (a == each || b == each) return each;
        return Outcome::kNoUpdate;
    }
    bool in_machine(const Cpus& cpus) const {
        return std::ranges::all_of(cpus, [&](int cpu) { return cpus_.count(cpu) > 0; });
    }
    Cpus usable(Name me) const {
        Cpus set;
        for (const auto& [cpu, c] : cpus_)
            if (user(c) == me) set.insert(cpu);
        return set;
    }
    Cpus owned(Name me) const {
        Cpus set;
        for (const auto& [cpu, c] : cpus_)
            if (c.owner == me) set.insert(cpu);
        return set;
    }
    int room(Name me) {
        return members_[me].max == 0 ? kMany : std::max(0, members_[me].max - size(usable(me)));
    }
    bool waits(Name me) const {
        if (petitioned(me) > 0) return true;
        return std::ranges::any_of(
            cpus_, [&](const auto& entry) { return std::ranges::count(entry.second.queue, me) > 0; });
    }

    void begin() {
        changes_.clear();
        before_.clear();
        for (const auto& [cpu, c] : cpus_) before_[cpu] = user(c);
    }
    /// A call's changes are the difference between before and after; requests that are pointless now go.
    void finish() {
        changes_.clear();
        for (const auto& [cpu, c] : cpus_) {
            if (before_[cpu] == user(c)) continue;
            if (before_[cpu] != 0) changes_.insert({cpu, -before_[cpu]});
            if (user(c) != 0) changes_.insert({cpu, user(c)});
        }
        tidy();
    }
    void tidy() {
        for (auto& [me, member] : members_)
            if (room(me) == 0) forget(me);
        for (auto& [cpu, c] : cpus_) c.queue.remove(user(c));
    }
    std::optional<Outcome> refused(Name me) {
        begin();
        if (!members_.count(me)) return Outcome::kPermission;
        if (!members_[me].enabled) return Outcome::kDisabled;
        return std::nullopt;
    }
    /// Who is disabled leaves what is away all the same.
    std::optional<Outcome> refused_to_return(Name me, const Cpus& from) {
        const auto no = refused(me);
        const bool leaves = std::any_of(from.begin(), from.end(), [&](int cpu) {
            return cpus_.count(cpu) && !cpus_[cpu].here && is_on(me, cpu);
        });
        return no == Outcome::kDisabled && leaves ? std::nullopt : no;
    }

    void forget(Name me) {
        for (auto& [cpu, c] : cpus_) c.queue.remove(me);
        petitions_.remove_if([&](const Petition& petition) { return petition.member == me; });
    }
    void unask(Name me, int cpu) {
        cpus_[cpu].queue.remove(me);
        for (Petition& petition : petitions_) {
            if (petition.member != me) continue;
            petition.allowed.erase(cpu);
            petition.wanted = std::min(petition.wanted, size(petition.allowed));
        }
        petitions_.remove_if([](const Petition& petition) { return petition.wanted == 0; });
    }
    Outcome ask(Name me, int n, const Cpus& allowed) {
        for (Petition& petition : petitions_) {
            if (petition.member != me || petition.allowed != allowed) continue;
            petition.wanted = std::min(petition.wanted + n, size(allowed));
            return Outcome::kNoted;
        }
        if (petitions_.size() == petitions_max_) return Outcome::kTooManyRequests;
        petitions_.push_back({me, n, allowed});
        return Outcome::kNoted;
    }
    Outcome enqueue(Name me, int cpu) {
        Cpu& c = cpus_[cpu];
        if (room(me) == 0 || user(c) == me) return Outcome::kNoUpdate;
        if (std::ranges::count(c.queue, me) > 0) return Outcome::kNoted;
        if (c.queue.size() == queue_) return Outcome::kTooManyRequests;
        c.queue.push_back(me);
        return Outcome::kNoted;
    }

    /// Both may be on it: the owner of a busy one since it may be, the guest since it has not left.
    static void go_away(Cpu& c) {
        if (!c.here) return;
        c.owner_leaves = c.state == kBusy && c.guest != c.owner;
        c.here = false;
    }
    bool is_on(Name me, int cpu) {
        const Cpu& c = cpus_[cpu];
        return c.guest == me || (c.owner_leaves && c.owner == me);
    }
    void leave_as(Name me, int cpu) {
        if (cpus_[cpu].guest == me)
            leave(cpu);
        else
            cpus_[cpu].owner_leaves = false;
    }
    /// The guest leaves; if nobody has the CPU then, the first who waits for it gets it.
    void leave(int cpu) {
        Cpu& c = cpus_[cpu];
        c.guest = c.state == kBusy && (c.here || c.owner_leaves) ? c.owner : 0;
        c.owner_leaves = false;
        if (c.state != kLent || !c.here) return;
        if (!c.queue.empty()) {
            c.guest = c.queue.front();
            c.queue.pop_front();
        } else {
            for (auto petition = petitions_.begin(); petition != petitions_.end(); ++petition) {
                if (petition->allowed.count(cpu) == 0) continue;
                c.guest = petition->member;
                if (--petition->wanted == 0) petitions_.erase(petition);
                break;
            }
        }
        tidy();
    }
    void lend_one(Name me, int cpu) {
        Cpu& c = cpus_[cpu];
        unask(me, cpu);
        if (c.owner == me) {
            c.state = kLent;
            c.owner_leaves = false;
        }
        if (c.guest == me) leave(cpu);
        tidy();
    }
    Outcome reclaim_one(Name me, int cpu) {
        Cpu& c = cpus_[cpu];
        if (c.owner != me) return Outcome::kPermission;
        if (c.guest == me && c.here) return Outcome::kNoUpdate;
        if (c.state == kBusy) return Outcome::kNoted;
        if (room(me) == 0) return Outcome::kNoUpdate;
        c.state = kBusy;
        if (c.guest != 0 || !c.here) return Outcome::kNoted;
        c.guest = me;
        return Outcome::kSuccess;
    }
    Outcome take_one(Name me, int cpu) {
        Cpu& c = cpus_[cpu];
        if (c.state != kLent || c.guest != 0 || !c.here || room(me) == 0) return Outcome::kNoUpdate;
        c.guest = me;
        if (c.owner == me) c.state = kBusy;
        return Outcome::kSuccess;
    }

    static CpuSet to_cpu_set(const Cpus& from) {
        CpuSet set;
        for (const int cpu : from) set.insert(cpu);
        return set;
    }
    Cpus near(Name me, const Cpus& from, int n) const {
        if (n <= 0) return {};
        if (size(from) <= n) return from;
        const Cpus anchor = usable(me).empty() ? owned(me) : usable(me);
        const CpuSet chosen = machine_.nearest(to_cpu_set(anchor), to_cpu_set(from), n);
        return {chosen.begin(), chosen.end()};
    }
    Outcome take_own(Name me, const Cpus& from, int& n) {
        Outcome outcome = Outcome::kNoUpdate;
        for (const bool idle : {true, false}) {
            Cpus candidates;
            for (const int cpu : from) {
                const Cpu& c = cpus_[cpu];
                if (c.owner == me && c.state == kLent && c.here && (c.guest == 0) == idle)
                    candidates.insert(cpu);
            }
            for (const int cpu : near(me, candidates, std::min(n, room(me)))) {
                outcome = worse(outcome, reclaim_one(me, cpu));
                --n;
            }
        }
        return outcome;
    }
    Outcome miss_own(Name me, const Cpus& from, int& n) {
        Outcome outcome = Outcome::kNoUpdate;
        Cpus candidates;
        for (const int cpu : from) {
            const Cpu& c = cpus_[cpu];
            if (c.owner == me && c.state == kLent && !c.here) candidates.insert(cpu);
        }
        for (const int cpu : near(me, candidates, std::min(n, room(me)))) {
            outcome = worse(outcome, reclaim_one(me, cpu));
            --n;
        }
        return outcome;
    }
    Outcome take_free(Name me, const Cpus& from, int& n) {
        Outcome outcome = Outcome::kNoUpdate;
        for (const bool own : {true, false}) {
            Cpus candidates;
            for (const int cpu : from) {
                const Cpu& c = cpus_[cpu];
                if (c.state == kLent && c.guest == 0 && c.here && (c.owner == me) == own)
                    candidates.insert(cpu);
            }
            for (const int cpu : near(me, candidates, std::min(n, room(me)))) {
                outcome = worse(outcome, take_one(me, cpu));
                --n;
            }
        }
        return outcome;
    }
    void lend_down_to(Name me, int keep) {
        Cpus own, borrowed;
        for (const int cpu : usable(me)) (cpus_[cpu].owner == me ? own : borrowed).insert(cpu);
        const auto keep_some = [&](Cpus& set, const Cpus& anchor, int n) {
            if (size(set) <= n) return set;
            const CpuSet kept = machine_.nearest(to_cpu_set(anchor), to_cpu_set(set), n);
            return Cpus(kept.begin(), kept.end());
        };
        const Cpus kept_own = keep_some(own, {}, keep);
        const Cpus kept_borrowed = keep_some(borrowed, owned(me), keep - size(kept_own));
        for (const int cpu : borrowed)
            if (kept_borrowed.count(cpu) == 0) lend_one(me, cpu);
        for (const int cpu : own)
            if (kept_own.count(cpu) == 0) lend_one(me, cpu);
    }

    Machine machine_;
    size_t queue_, petitions_max_;
    bool keep_;
    bool shared_ = false;
    std::map<int, Cpu> cpus_;
    std::map<Name, Member> members_;
    std::list<Petition> petitions_;
    std::map<int, Name> before_;
    Changes changes_;
};

}  // namespace heddle::test
