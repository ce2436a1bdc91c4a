// Turns: CPUs shared by time where they cannot be shared by number.
//
// The threads of a gang wait for each other by spinning; on fewer CPUs than threads it burns its time waiting
// for threads that do not run. So while the policy would give a gang fewer CPUs than it has threads, the
// clients take turns. In its turn a client gets all CPUs that it can use; the rest goes to the others in the
// order in which they are next, as far as it serves them: a gang that the rest cannot hold, and whoever is
// left without a CPU, sits the turn out, and none of its threads runs meanwhile. The next turn is that of the
// client that has had the fewest by its weight.
#include <algorithm>

#include "arbiter/arbiter.hpp"
#include "arbiter/client.hpp"

namespace heddle {

void Arbiter::needs_together(ClientId id, int threads, Time now) {
    Client* client = find(id);
    threads = std::clamp(threads, 0, CpuSet::kMaxCpus);
    if (client == nullptr || client->together == threads) return;
    client->together = threads;
    rebalance(now);
}

int Arbiter::gang(const Client& client) const {
    return client.together < 2 ? 0 : std::min(client.together, wanted(client));
}

void Arbiter::take_turns(Time now) {
    const bool squeezed =
        std::ranges::any_of(clients_, [this](const auto& c) { return gang(*c) > std::max(c->target, 1); });
    if (!squeezed) {
        turn_ = ClientId{0};
        for (const auto& c : clients_) c->sits_out = false;
        return;
    }
    std::vector<Client*> order;
    for (const auto& c : clients_)
        if (wanted(*c) > 0) order.push_back(c.get());
    std::ranges::stable_sort(order, {}, [](const Client* c) { return c->turns; });

    auto current = std::ranges::find(order, turn_, [](const Client* c) { return c->id; });
    if (current == order.end() || now >= turn_ends_) {
        current = order.begin();
        // Who comes new, or was away, has no turns to make up for.
        const double fewest = order.front()->turns;
        for (Client* c : order) c->turns = std::clamp(c->turns, fewest, fewest + 1);
        turn_ = (*current)->id;
        turn_ends_ = now + limits_.turn;
        (*current)->turns += 1.0 / (*current)->weight;
    }
    std::rotate(order.begin(), current, current + 1);

    int left = cpus_.count();
    for (const auto& c : clients_)
        if (c->away) left -= c->held();
    for (Client* c : order) {
        const int serves = c->id == turn_ ? wanted(*c) : std::max(gang(*c), std::min(c->target, left));
        c->target = serves <= left ? serves : 0;
        left -= c->target;
        c->sits_out = c->target == 0;
    }
}

}  // namespace heddle
