// Turns: CPUs shared by time where they cannot be shared by number.
//
// The threads of a gang wait for each other by spinning; on fewer CPUs than threads it burns its time waiting
// for threads that do not run. So while the policy would give a gang fewer CPUs than it has threads, the
// clients take turns. The threads of a parallel region that often meet are a gang, too, since such a region
// cannot shrink; but they get on with fewer CPUs, sleeping at each meeting in up to twice the time. So they
// count only where no CPU would be idle in anybody's turn.
//
// In its turn a client gets all CPUs that it can use; the rest goes to the others in the order in which they
// are next, as far as it serves them: a gang that the rest cannot hold, and whoever is left without a CPU,
// sits the turn out, and none of its threads runs meanwhile.
//
// The next turn is that of the client that has had the fewest by its weight. A turn counts less the heavier
// the client is, but at least a kMostAhead-th of what it counts for the lightest one. A client comes in as if
// it had just had a turn. So between two turns of any client every place of another is served kMostAhead + 1
// times at most, whatever the weights are and whoever comes and goes.
#include <algorithm>
#include <utility>

#include "arbiter/arbiter.hpp"
#include "arbiter/client.hpp"
#include "base/steps.hpp"

namespace heddle {
namespace {

constexpr int kMostAhead = 8;
/// What a turn counts for a client of weight 1. Large enough for a share of a thousandth to be exact enough.
constexpr long kTurn = 1'000'000;

}  // namespace

void Arbiter::needs_together(ClientId id, const Gangs& gangs, Time now) {
    Client* client = find(id);
    const Gangs known{std::clamp(gangs.spinning, 0, CpuSet::kMaxCpus),
                      std::clamp(gangs.meeting, 0, CpuSet::kMaxCpus)};
    if (client == nullptr || client->gangs == known) return;
    client->gangs = known;
    rebalance(now);
}

bool Arbiter::turns_fill_the_machine() const {
    HEDDLE_STEPS(clients_.size());
    const int all = cpus_.count();
    return std::ranges::all_of(clients_, [&](const auto& c) { return wanted(*c) == 0 || wanted(*c) >= all; });
}

void Arbiter::take_turns(Time now) {
    HEDDLE_STEPS(clients_.size());
    const bool filled = turns_fill_the_machine();
    const auto gang = [&](const Client& c) {
        const int threads = filled ? std::max(c.gangs.spinning, c.gangs.meeting) : c.gangs.spinning;
        return threads < 2 ? 0 : std::min(threads, wanted(c));
    };
    const bool squeezed =
        std::ranges::any_of(clients_, [&](const auto& c) { return gang(*c) > std::max(c->target, 1); });
    if (!squeezed) {
        turn_ = ClientId{0};
        for (const auto& c : clients_) c->sits_out = false;
        return;
    }
    HEDDLE_STEPS(4 * clients_.size());
    std::vector<Client*> order;
    for (const auto& c : clients_)
        if (wanted(*c) > 0) order.push_back(c.get());
    const auto by_turns = [](const Client* c) {
        HEDDLE_STEPS(1);
        return std::pair(c->turns, c->had_turn);
    };
    const bool over = now >= turn_ends_ || std::ranges::find(order, turn_, &Client::id) == order.end();
    if (over) {
        const int lightest = (*std::ranges::min_element(order, {}, &Client::weight))->weight;
        const auto cost = [&](const Client& c) { return kTurn / std::min(c.weight, kMostAhead * lightest); };
        // Who had no use for turns has none to make up for, and who became heavier does not pay as a light
        // one.
        for (Client* c : order)
            c->turns = c->turns == Client::kNoTurns ? turns_had_ + cost(*c)
                                                    : std::clamp(c->turns, turns_had_, turns_had_ + cost(*c));
        Client* next = *std::ranges::min_element(order, {}, by_turns);
        turn_ = next->id;
        turn_ends_ = now + limits_.turn;
        turns_had_ = next->turns;
        next->turns += cost(*next);
        next->had_turn = ++turn_number_;
    }
    std::ranges::stable_sort(order, {}, by_turns);
    const auto current = std::ranges::find(order, turn_, &Client::id);
    std::rotate(order.begin(), current, current + 1);

    int left = cpus_.count();
    for (const auto& c : clients_)
        if (c->away) left -= c->held();
    for (Client* c : order) {
        const int serves =
            c->id == turn_ ? std::min(wanted(*c), left) : std::max(gang(*c), std::min(c->target, left));
        c->target = serves <= left ? serves : 0;
        left -= c->target;
        c->sits_out = c->target == 0;
    }
}

}  // namespace heddle
