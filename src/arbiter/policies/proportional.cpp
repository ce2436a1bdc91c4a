// Policy "proportional": seed 002, Fig. 3 (one CPU each, the rest by demand, largest remainder), with weights
// and minima.
#include <algorithm>
#include <numeric>

#include "arbiter/policy.hpp"
#include "base/steps.hpp"

namespace heddle {
namespace {

/// Fewer CPUs than active claims: one each, those with the largest demand per CPU held first; a claim that
/// holds nothing has an infinite quotient (seed 002 section 5).
void one_each(std::span<const Claim> claims, int cpus, std::vector<int>& portions) {
    std::vector<size_t> order;
    for (size_t i = 0; i < claims.size(); ++i)
        if (claims[i].demand > 0) order.push_back(i);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
        HEDDLE_STEPS(1);
        // A holder keeps its CPU: taking it away to serve another would only turn the shortage round.
        if ((claims[a].held > 0) != (claims[b].held > 0)) return claims[a].held > 0;
        return claims[a].demand * claims[a].weight > claims[b].demand * claims[b].weight;
    });
    for (size_t k = 0; k < order.size() && k < static_cast<size_t>(cpus); ++k) portions[order[k]] = 1;
}

}  // namespace

std::vector<int> apportion(std::span<const Claim> claims, int cpus) {
    HEDDLE_STEPS(5 * claims.size());
    std::vector<int> portions(claims.size(), 0);
    const long wanted = std::accumulate(claims.begin(), claims.end(), 0L,
                                        [](long sum, const Claim& c) { return sum + c.demand; });
    if (wanted <= cpus) {
        for (size_t i = 0; i < claims.size(); ++i) portions[i] = claims[i].demand;
        return portions;
    }
    const auto active = std::ranges::count_if(claims, [](const Claim& c) { return c.demand > 0; });
    if (active >= cpus) {
        one_each(claims, cpus, portions);
        return portions;
    }

    // One CPU for each, then the minima, as far as there are CPUs: a newcomer's takes nothing from those of
    // others.
    int left = cpus - static_cast<int>(active);
    for (size_t i = 0; i < claims.size(); ++i) {
        if (claims[i].demand == 0) continue;
        const int more = std::min(left, std::clamp(claims[i].min, 1, claims[i].demand) - 1);
        portions[i] = 1 + more;
        left -= more;
    }

    // Each pass shares what is left in proportion; a claim that reaches its demand drops out and the rest is
    // shared again.
    while (left > 0) {
        HEDDLE_STEPS(2 * claims.size());
        long load = 0;
        for (size_t i = 0; i < claims.size(); ++i)
            load += long{claims[i].weight} * (claims[i].demand - portions[i]);
        std::vector<std::pair<long, size_t>> remainders;
        const int round = left;
        for (size_t i = 0; i < claims.size(); ++i) {
            const int room = claims[i].demand - portions[i];
            if (room == 0) continue;
            const long share = long{claims[i].weight} * room * round;
            const int whole = static_cast<int>(std::min<long>(share / load, room));
            portions[i] += whole;
            left -= whole;
            if (whole < room) remainders.emplace_back(share % load, i);
        }
        std::ranges::stable_sort(remainders, [](const auto& a, const auto& b) {
            HEDDLE_STEPS(1);
            return a.first > b.first;
        });
        for (const auto& [remainder, i] : remainders) {
            if (left == 0 || remainder == 0) break;
            ++portions[i];
            --left;
        }
    }
    return portions;
}

namespace {

class Proportional final : public Policy {
  public:
    [[nodiscard]] std::string_view name() const override { return "proportional"; }
    [[nodiscard]] std::vector<int> targets(std::span<const Claim> claims, int cpus) const override {
        return apportion(claims, cpus);
    }
};

}  // namespace

std::unique_ptr<Policy> make_proportional() {
    return std::make_unique<Proportional>();
}

}  // namespace heddle
