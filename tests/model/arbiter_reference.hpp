// What each client of an arbiter should have once all behave, worked out slowly and apart from it: targets by
// the figure of seed 002 as it is printed, one CPU after the other, and what can be had of them at most as a
// flow. Shares no code with the arbiter but CpuSet.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "heddle/cpu_set.hpp"

namespace heddle::test {

struct ReferenceClaim {
    int demand, min, max, weight;  ///< max 0: none
    CpuSet allowed;                ///< of what there is to hand out
    CpuSet owned;
    [[nodiscard]] int wanted() const {
        const int most = max > 0 ? std::min(max, allowed.count()) : allowed.count();
        return std::min(std::max(demand, min), most);
    }
};

/// What is wanted of `left` CPUs, each: one, then the minima in the claims' order, then shares of the rest in
/// proportion to weight times what is still wanted, the remainders' order deciding over single CPUs. Nothing
/// where not even one each can be had: who gets one depends on who has one.
inline std::optional<std::vector<int>> portions(const std::vector<int>& wanted,
                                                const std::vector<int>& minima,
                                                const std::vector<ReferenceClaim>& claims, int left) {
    const auto all = static_cast<size_t>(std::ssize(claims));
    int sum = 0, active = 0;
    for (const int one : wanted) {
        sum += one;
        active += one > 0 ? 1 : 0;
    }
    if (sum <= left) return wanted;
    if (active >= left) return std::nullopt;
    std::vector<int> got(all, 0);
    for (size_t i = 0; i < all; ++i)
        if (wanted[i] > 0) ++got[i], --left;
    for (size_t i = 0; i < all; ++i)
        for (; left > 0 && got[i] < std::min(minima[i], wanted[i]) && got[i] > 0; --left) ++got[i];
    while (left > 0) {
        // The share of each is load[i] * left / total, exactly: the whole part now, the rest by rank.
        std::vector<long> load(all, 0);
        long total = 0;
        for (size_t i = 0; i < all; ++i) total += load[i] = long{claims[i].weight} * (wanted[i] - got[i]);
        const long round = left;
        std::vector<long> rest(all, 0);
        for (size_t i = 0; i < all; ++i) {
            for (rest[i] = load[i] * round; rest[i] >= total && got[i] < wanted[i]; rest[i] -= total) {
                ++got[i];
                --left;
            }
            rest[i] %= total;
            if (got[i] == wanted[i]) rest[i] = 0;
        }
        while (left > 0) {
            const auto most = std::ranges::max_element(rest);
            if (*most == 0) break;
            ++got[static_cast<size_t>(most - rest.begin())];
            *most = 0;
            --left;
        }
    }
    return got;
}

/// With owners each has its own first, as far as it wants them.
inline std::optional<std::vector<int>> reference_targets(const std::vector<ReferenceClaim>& claims, int cpus,
                                                         bool has_owners) {
    std::vector<int> own, wanted, minima;
    for (const ReferenceClaim& claim : claims) {
        const int all = claim.wanted();
        const int first = has_owners ? std::min(all, (claim.owned & claim.allowed).count()) : 0;
        own.push_back(first);
        wanted.push_back(all - first);
        minima.push_back(claim.min - first);
        cpus -= first;
    }
    auto more = portions(wanted, minima, claims, cpus);
    if (more)
        for (size_t i = 0; i < own.size(); ++i) (*more)[i] += own[i];
    return more;
}

/// How many CPUs can be handed out at once to clients that may have so many each: the largest flow, by paths
/// that make room (Kuhn, The Hungarian Method, 1955). As many as an owner has a right to come from its own.
class LargestFlow {
  public:
    LargestFlow(const std::vector<int>& wanted, const std::vector<ReferenceClaim>& claims)
        : holder_(kMostCpus, kNobody) {
        for (size_t i = 0; i < claims.size(); ++i) {
            const CpuSet own = claims[i].owned & claims[i].allowed;
            for (int n = 0; n < wanted[i]; ++n) {
                wishes_.push_back(n < own.count() ? own : claims[i].allowed);
                seen_ = {};
                if (serve(wishes_.size() - 1)) ++served_;
            }
        }
    }
    [[nodiscard]] int served() const { return served_; }

  private:
    static constexpr size_t kNobody = SIZE_MAX;
    static constexpr size_t kMostCpus = 1024;
    bool serve(size_t wish) {
        for (const int cpu : wishes_[wish] - seen_) {
            if (seen_.contains(cpu)) continue;
            seen_.insert(cpu);
            size_t& holder = holder_[static_cast<size_t>(cpu)];
            if (holder != kNobody && !serve(holder)) continue;
            holder = wish;
            return true;
        }
        return false;
    }

    std::vector<CpuSet> wishes_;  ///< for one CPU each
    std::vector<size_t> holder_;  ///< by CPU: whose wish it is
    CpuSet seen_;
    int served_ = 0;
};

}  // namespace heddle::test
