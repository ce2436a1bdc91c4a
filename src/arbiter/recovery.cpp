// What an arbiter makes of the clients of the one before it: docs/ARBITER.md.
#include <algorithm>

#include "arbiter/client.hpp"

namespace heddle {

std::optional<ClientId> Arbiter::restore(const Registration& registration, Time now) {
    if (clients_.size() >= static_cast<size_t>(limits_.clients) || last_id_ >= kMostClientsEver)
        return std::nullopt;
    const CpuSet keeps = registration.held & free_;
    CpuSet owned = policy_->has_owners() ? registration.owned & machine_.cpus() : CpuSet{};
    for (const auto& other : clients_)
        if (other->job != registration.job || registration.job == JobId{}) owned -= other->owned;
    Client& restored = enter(registration, now);
    restored.away = true;
    restored.demand = restored.peak = 0;
    last_job_ = std::max(last_job_, registration.job.value);
    restored.job = registration.job == JobId{} ? JobId{++last_job_} : registration.job;
    restored.asks = {registration.min, owned};
    grant(restored, keeps, now);
    rebalance(now);
    return restored.id;
}

/// They may be on more than they keep: on what was asked back from them, which may be all.
bool Arbiter::awaits_restored(Time now) const {
    return now < started_ + limits_.recovery &&
           std::ranges::any_of(clients_, [](const auto& client) { return client->away; });
}

void Arbiter::note_claims(Client& client, const CpuSet& held) {
    for (const int cpu : held& cpus_) {
        const Client* holder = find(this->holder(cpu));
        if (holder != nullptr && holder->away && holder->user == client.user) client.claims.insert(cpu);
    }
}

/// Among two claimants of one CPU the older has it.
void Arbiter::honour_claims(Time now) {
    if (std::ranges::all_of(clients_, [](const auto& client) { return client->claims.empty(); })) return;
    for (const auto& client : clients_) grant(*client, client->claims & free_, now);
    CpuSet kept;
    for (const auto& client : clients_)
        if (client->away) kept |= client->granted | client->leaving_cpus();
    for (const auto& client : clients_) client->claims &= kept;
}

}  // namespace heddle
