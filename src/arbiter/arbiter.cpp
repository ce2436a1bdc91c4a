// The events of the arbiter; how CPUs are moved is in rebalance.cpp.
#include "arbiter/arbiter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "arbiter/client.hpp"
#include "base/steps.hpp"
#include "heddle/error.hpp"

namespace heddle {
Arbiter::Arbiter(Machine machine, std::unique_ptr<Policy> policy, const ArbiterLimits& limits, Time now,
                 const CpuSet& cpus)
    : machine_(std::move(machine)),
      policy_(std::move(policy)),
      limits_(limits),
      ledger_(machine_, LedgerLimits{.members = limits.clients + 1}),
      cpus_(cpus.empty() ? machine_.cpus() : cpus & machine_.cpus()),
      free_(cpus_),
      grants_(static_cast<size_t>(machine_.cpus().last() + 1)),
      owners_(grants_.size()),
      core_time_{},
      accounted_at_(now),
      last_sample_(now),
      started_(now),
      recovering_until_(now) {
    Actions ignored;
    pool_ = ledger_.attach("arbiter", machine_.cpus(), ignored);
    must(ledger_.lend_cpu_mask(pool_, cpus_, ignored), Outcome::kSuccess, "lending all CPUs");
}

Arbiter::~Arbiter() = default;
Arbiter::Arbiter(Arbiter&&) noexcept = default;

Refusal Arbiter::join(const Registration& registration, Time now, ClientId& id) {
    const Refusal refusal = admit(registration, now, id);
    // Also where it is refused: CPUs that others had lent were taken for it.
    rebalance(now);
    return refusal;
}

Refusal Arbiter::admit(const Registration& registration, Time now, ClientId& id) {
    Client* before = find(registration.returns);
    if (before != nullptr && !before->away) before = nullptr;
    const auto others = std::ranges::count_if(clients_, [&](const auto& c) { return c.get() != before; });
    if (others >= limits_.clients || last_id_ >= kMostClientsEver) return Refusal::kFull;
    const auto same_user = std::ranges::count_if(
        clients_, [&](const auto& c) { return c->user == registration.user && c.get() != before; });
    if (same_user >= limits_.clients_per_user) return Refusal::kUserFull;
    const CpuSet allowed =
        registration.allowed.empty() ? machine_.cpus() : registration.allowed & machine_.cpus();
    if (!allowed.intersects(cpus_)) return Refusal::kNoCpus;
    if (!machine_.cpus().contains(registration.owned)) return Refusal::kNotThere;
    const Reservation asks{registration.min, policy_->has_owners() ? registration.owned : CpuSet{}};
    const Client* const kin = kin_of(registration, asks);
    const JobId job = before != nullptr && before->asks.owned == asks.owned ? before->job
                      : kin != nullptr                                      ? kin->job
                                                                            : JobId{last_job_ + 1};
    const uint32_t around = kin != nullptr && kin->around != 0 ? kin->around : registration.around;
    if (const Refusal refusal = refusal_of_owned(asks.owned, registration.user, job, before);
        refusal != Refusal::kNone)
        return refusal;

    if (before != nullptr) remove(*before, false, now);
    Client& joined = enter(registration, now);
    id = joined.id;
    joined.job = job;
    last_job_ = std::max(last_job_, job.value);
    joined.around = around == registration.pid ? 0 : around;
    joined.asks = asks;
    if (!registration.held.empty()) {
        if (now - started_ < limits_.recovery_ends)
            recovering_until_ = std::max(recovering_until_, now + limits_.recovery);
        grant(joined, registration.held & allowed & free_, now);
        note_claims(joined, registration.held & allowed);
    }
    return Refusal::kNone;
}

Arbiter::Client& Arbiter::enter(const Registration& registration, Time now) {
    auto client = std::make_unique<Client>();
    client->id = ClientId{++last_id_};
    Actions ignored;
    client->member = ledger_.attach(registration.name, {}, ignored);
    client->name = registration.name;
    client->pid = registration.pid;
    client->user = registration.user;
    client->demand = std::max(registration.demand, 0);
    client->min = 0;  // until it has its part
    client->max = registration.max;
    client->weight = std::clamp(registration.weight, 1, 1000);
    client->allowed = registration.allowed.empty() ? machine_.cpus() : registration.allowed & machine_.cpus();
    client->affinity = client->allowed;
    client->usable = (client->allowed & cpus_).count();
    client->peak = client->demand;
    client->peak_at = client->accounted_at = now;
    account(now);
    say({Event::Kind::kJoined, client->id, -1, registration.pid, registration.name});
    return *clients_.emplace_back(std::move(client));
}

void Arbiter::leave(ClientId id, bool died, Time now) {
    Client* client = find(id);
    if (client == nullptr) return;
    remove(*client, died, now);
    rebalance(now);
}

void Arbiter::remove(Client& client, bool died, Time now) {
    account(now);
    vacate(client, client.granted | client.leaving_cpus(), now);
    Actions ignored;
    must(ledger_.detach(client.member, ignored), Outcome::kSuccess, "detaching a client");
    say({Event::Kind::kLeft, client.id, -1, died ? 1U : 0U, {}});
    disown(client);
    core_time_.used += client.cpu_time;
    clients_.erase(std::ranges::lower_bound(clients_, client.id, {}, [](const auto& c) { return c->id; }));
}

void Arbiter::obeyed(ClientId id, uint32_t epoch, Time now) {
    Client* client = find(id);
    if (client == nullptr) return;
    // Wrap-around safe; an epoch that was never published is a lie or a mix-up, and obeys nothing.
    if (static_cast<int32_t>(epoch - client->epoch) > 0) return;
    CpuSet left;
    for (const Client::Leaving& part : client->leaving)
        if (static_cast<int32_t>(epoch - part.epoch) >= 0) left |= part.cpus;
    if (left.empty()) return;
    vacate(*client, left, now);
    rebalance(now);
}

void Arbiter::hands_over(ClientId id, Time now) {
    Client* client = find(id);
    if (client == nullptr || client->hands_over) return;
    client->hands_over = true;
    rebalance(now);
}

void Arbiter::observe(ClientId id, int demand, Time since, bool urgent, Time now) {
    Client* client = find(id);
    if (client == nullptr || client->stopped) return;
    demand = std::clamp(demand, 0, CpuSet::kMaxCpus);
    if (demand == client->demand) return;
    if (demand < client->demand && !urgent && now - since < limits_.dwell) return;
    note_demand(*client, demand, now);
    rebalance(now);
}

void Arbiter::note_demand(Client& client, int demand, Time now) {
    if (demand == client.demand || client.stopped) return;
    client.demand = demand;
    client.noticed_changed = true;
    if (demand >= client.peak) {
        client.peak = demand;
        client.peak_at = now;
    }
    say({Event::Kind::kDemand, client.id, -1, static_cast<uint32_t>(demand), {}});
}

void Arbiter::was_stopped(ClientId id, Time now) {
    Client* client = find(id);
    if (client == nullptr || client->stopped) return;
    note_demand(*client, 0, now);
    client->stopped = true;
    rebalance(now);
}

void Arbiter::goes_on(ClientId id, Time now) {
    Client* client = find(id);
    if (client == nullptr || !client->stopped) return;
    client->stopped = false;
    rebalance(now);
}

std::vector<ClientId> Arbiter::stopped() const {
    std::vector<ClientId> all;
    for (const auto& client : clients_)
        if (client->stopped) all.push_back(client->id);
    return all;
}

bool Arbiter::is_stopped(ClientId id) const {
    const Client* client = find(id);
    return client != nullptr && client->stopped;
}

void Arbiter::set_limits(ClientId id, int min, int max, int weight, Time now) {
    Client* client = find(id);
    if (client == nullptr) return;
    client->asks.min = min;
    client->max = max;
    client->weight = std::clamp(weight, 1, 1000);
    rebalance(now);
}

void Arbiter::fenced(ClientId id, bool bound, Time now) {
    Client* client = find(id);
    if (client == nullptr) return;
    if (!bound) ++failed_fences_;
    CpuSet left;
    for (const Client::Leaving& part : client->leaving)
        if (part.fencing) left |= part.cpus;
    if (left.empty()) return;
    for (const int cpu : left) actions_.emplace_back(EndByForce{id, cpu, grant_of(cpu).generation});
    vacate(*client, left, now);
    rebalance(now);
}

void Arbiter::set_cpus(const CpuSet& cpus, Time now) {
    const CpuSet before = std::exchange(cpus_, cpus & machine_.cpus());
    if (cpus_ == before) return;
    account(now);
    Actions ignored;
    for (const int cpu : (before - cpus_) & free_)
        must(ledger_.reclaim_cpu(pool_, cpu, ignored), Outcome::kSuccess, "withdrawing a free CPU");
    free_ &= cpus_;
    for (const auto& client : clients_) client->usable = (client->allowed & cpus_).count();
    for (const auto& client : clients_) revoke(*client, client->granted - cpus_, now);
    CpuSet held;
    for (const auto& client : clients_) held |= client->granted | client->leaving_cpus();
    for (const int cpu : cpus_ - before - held)
        must(ledger_.lend_cpu(pool_, cpu, ignored), Outcome::kSuccess, "offering a CPU again");
    free_ |= cpus_ - before - held;
    rebalance(now);
}

void Arbiter::tick(Time now) {
    for (const auto& client : clients_) {
        bool late = false;
        for (Client::Leaving& part : client->leaving) {
            if (part.fencing || now < part.deadline) continue;
            part.fencing = late = true;
        }
        if (late) actions_.emplace_back(Fence{client->id, client->granted});
    }
    last_sample_ = now;
    rebalance(now);
}

std::optional<Time> Arbiter::next_deadline() const {
    std::optional<Time> next;
    const auto at = [&](Time time) { next = next ? std::min(*next, time) : time; };
    for (const auto& client : clients_)
        for (const Client::Leaving& part : client->leaving)
            if (!part.fencing) at(part.deadline);
    if (turn_ != ClientId{0}) at(turn_ends_);
    if (sampling_) at(last_sample_ + limits_.sample_every);
    if (std::ranges::any_of(clients_, [](const auto& c) { return c->stopped; }))
        at(last_sample_ + limits_.look_at_stopped);
    if (recovering_until_ > last_sample_ && !clients_.empty()) at(recovering_until_);
    if (awaits_restored(last_sample_)) at(started_ + limits_.recovery);
    return next;
}

std::vector<ArbiterAction> Arbiter::take_actions() {
    return std::exchange(actions_, {});
}

std::vector<ClientStatus> Arbiter::clients(Time now) const {
    std::vector<ClientStatus> all;
    for (const auto& c : clients_) {
        const auto running = c->held() + c->leaving_cpus().count();
        all.push_back({c->id, c->name, c->pid, c->user, c->demand, c->min, c->max, c->weight, c->target,
                       c->granted, c->leaving_cpus(), c->owned, c->away,
                       c->cpu_time + running * (now - c->accounted_at)});
    }
    return all;
}

CpuSet Arbiter::cpus_of(ClientId id) const {
    const Client* client = find(id);
    return client == nullptr ? CpuSet{} : client->granted | client->leaving_cpus();
}

CpuSet Arbiter::leaving_of(ClientId id) const {
    const Client* client = find(id);
    return client == nullptr ? CpuSet{} : client->leaving_cpus();
}

bool Arbiter::leaving(int cpu) const {
    return ledger_.state(cpu) == CpuState::kBusy && ledger_.guest(cpu) != pool_;
}

std::string Arbiter::check() const {
    if (std::string broken = ledger_.check(); !broken.empty()) return broken;
    CpuSet seen = free_;
    for (const auto& client : clients_) {
        const CpuSet leaving = client->leaving_cpus();
        if (seen.intersects(client->granted) || client->granted.intersects(leaving) ||
            seen.intersects(leaving))
            return fmt::format("a CPU of client {} has a second holder", client->id.value);
        seen |= client->granted | leaving;
        for (const int cpu : client->granted | leaving)
            if (ledger_.guest(cpu) != client->member || grant_of(cpu).holder != client->id)
                return fmt::format("CPU {} is not client {}'s in the ledger", cpu, client->id.value);
        if (client->held_count != client->granted.count())
            return fmt::format("the CPUs of client {} are miscounted", client->id.value);
        if (!client->allowed.contains(client->granted))
            return fmt::format("client {} holds a CPU outside its affinity", client->id.value);
    }
    int lent = 0;
    for (const auto& client : clients_)
        for (const int cpu : client->owned) {
            if (owner_of(cpu) != client->id)
                return fmt::format("CPU {} is not its owner's, client {}", cpu, client->id.value);
            lent += holder(cpu) != ClientId{0} && holder(cpu) != client->id;
        }
    if (std::string broken = check_jobs(); !broken.empty()) return broken;
    if (lent != lent_) return fmt::format("{} CPUs are lent, and {} were counted", lent, lent_);
    for (const int cpu : free_)
        if (grant_of(cpu).holder != ClientId{0} || !grant_of(cpu).successors.empty())
            return fmt::format("CPU {} is free, and has a grant", cpu);
    if (!seen.contains(cpus_)) return fmt::format("lost CPUs: {}", (cpus_ - seen).to_list());
    return "";
}

Arbiter::Client* Arbiter::find(ClientId id) const {
    HEDDLE_STEPS(std::bit_width(clients_.size()));
    const auto place = std::ranges::lower_bound(clients_, id, {}, [](const auto& c) { return c->id; });
    return place == clients_.end() || (*place)->id != id ? nullptr : place->get();
}

CoreTime Arbiter::core_time(Time now) const {
    CoreTime sum = core_time_;
    for (const ClientStatus& client : clients(now)) sum.used += client.cpu_time;
    sum.lent += lent_ * (now - accounted_at_);
    sum.idle += free_.count() * (now - accounted_at_);
    return sum;
}

void Arbiter::count_lent(int cpu, ClientId holder, int change) {
    const ClientId owner = owner_of(cpu);
    if (owner != ClientId{0} && holder != ClientId{0} && owner != holder) lent_ += change;
}

void Arbiter::account(Time now) {
    core_time_.lent += lent_ * (now - accounted_at_);
    core_time_.idle += free_.count() * (now - accounted_at_);
    accounted_at_ = now;
}

void Arbiter::account(Client& client, Time now) {
    account(now);
    client.cpu_time += (client.held() + client.leaving_cpus().count()) * (now - client.accounted_at);
    client.accounted_at = now;
}

void Arbiter::grant(Client& client, const CpuSet& cpus, Time now) {
    if (cpus.empty()) return;
    account(client, now);
    for (const int cpu : cpus) {
        Actions ignored;
        must(ledger_.borrow_cpu(client.member, cpu, ignored), Outcome::kSuccess, "granting a free CPU");
        CpuGrant& grant = grants_[static_cast<size_t>(cpu)];
        ++grant.generation;
        grant.holder = client.id;
        count_lent(cpu, client.id, 1);
        actions_.emplace_back(NameSuccessor{client.id, cpu, grant.generation, ClientId{0}});
        say({Event::Kind::kCpu, client.id, cpu, 0, {}});
    }
    free_ -= cpus;
    client.granted |= cpus;
    client.held_count = client.granted.count();
    client.grant_changed = true;
}

void Arbiter::revoke(Client& client, const CpuSet& cpus, Time now) {
    if (cpus.empty()) return;
    for (const int cpu : cpus) {
        Actions ignored;
        must(ledger_.reclaim_cpu(pool_, cpu, ignored), Outcome::kNoted, "revoking a CPU");
    }
    client.granted -= cpus;
    client.held_count = client.granted.count();
    client.grant_changed = true;
    const Client::Leaving part{cpus, client.epoch + 2, now + limits_.fence_after};
    // Of one decision there is one part, however many others it is for.
    if (Client::Leaving* last = client.leaving.empty() ? nullptr : &client.leaving.back();
        last != nullptr && last->epoch == part.epoch && last->deadline == part.deadline)
        last->cpus |= cpus;
    else
        client.leaving.push_back(part);
}

void Arbiter::vacate(Client& client, const CpuSet& cpus, Time now) {
    if (cpus.empty()) return;
    account(client, now);
    for (const int cpu : cpus) {
        Actions ignored;
        if (client.granted.contains(cpu)) {
            must(ledger_.lend_cpu(client.member, cpu, ignored), Outcome::kSuccess, "lending a granted CPU");
        } else {
            must(ledger_.return_cpu(client.member, cpu, ignored), Outcome::kSuccess, "returning a CPU");
            // One that is no longer to be handed out stays with the arbiter.
            if (cpus_.contains(cpu))
                must(ledger_.lend_cpu(pool_, cpu, ignored), Outcome::kSuccess, "lending a returned CPU");
        }
        count_lent(cpu, client.id, -1);
        end_grant(cpu);
        say({Event::Kind::kCpu, ClientId{0}, cpu, 0, {}});
    }
    free_ |= cpus & cpus_;
    if (client.granted.intersects(cpus)) client.grant_changed = true;
    client.granted -= cpus;
    client.held_count = client.granted.count();
    for (Client::Leaving& part : client.leaving) part.cpus -= cpus;
    std::erase_if(client.leaving, [](const Client::Leaving& part) { return part.cpus.empty(); });
}

void Arbiter::must(Outcome outcome, Outcome expected, const char* what) {
    if (outcome != expected)
        throw std::logic_error(
            fmt::format("arbiter: the ledger answered {} to {}", to_string(outcome), what));
}

void Arbiter::publish() {
    HEDDLE_STEPS(clients_.size() + ended_.size());
    for (const auto& client : clients_) {
        // Whose turn begins goes on when the others have left.
        const bool waits = client->sits_out || (client->parked && turn_ != ClientId{0});
        const bool parked = waits && client->granted.empty();
        const bool has_turn = turn_ != ClientId{0} && !client->sits_out;
        client->grant_changed |= parked != client->parked || has_turn != client->has_turn;
        client->parked = parked;
        client->has_turn = has_turn;
        if (!client->grant_changed && !client->noticed_changed) continue;
        if (client->grant_changed) client->epoch += 2;
        actions_.emplace_back(Publish{client->id, client->granted, client->epoch, contended_, client->demand,
                                      client->grant_changed, !client->leaving.empty(), parked, has_turn});
        client->grant_changed = client->noticed_changed = false;
    }
    for (const NameLender& ended : ended_) {
        const std::vector<ClientId>& anew = grant_of(ended.cpu).successors;
        if (std::ranges::find(anew, ended.client) == anew.end()) actions_.emplace_back(ended);
    }
    ended_.clear();
}

}  // namespace heddle
