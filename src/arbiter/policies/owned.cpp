// Policy "owned": seed 000's owners. A client's own CPUs are its own whenever it can use them; what owners
// leave idle is shared as "proportional" shares.
#include <algorithm>
#include <numeric>

#include "arbiter/policy.hpp"
#include "base/steps.hpp"

namespace heddle {
namespace {

class Owned final : public Policy {
  public:
    [[nodiscard]] std::string_view name() const override { return "owned"; }
    [[nodiscard]] bool has_owners() const override { return true; }
    [[nodiscard]] std::vector<int> targets(std::span<const Claim> claims, int cpus) const override {
        HEDDLE_STEPS(3 * claims.size());
        std::vector<int> own(claims.size());
        std::vector<Claim> rest(claims.begin(), claims.end());
        for (size_t i = 0; i < claims.size(); ++i) {
            own[i] = std::min(claims[i].owned, claims[i].demand);
            rest[i].demand -= own[i];
            rest[i].min = std::max(0, rest[i].min - own[i]);
            rest[i].held = std::max(0, rest[i].held - own[i]);
        }
        const int left = cpus - std::accumulate(own.begin(), own.end(), 0);
        const std::vector<int> more = apportion(rest, left);
        for (size_t i = 0; i < claims.size(); ++i) own[i] += more[i];
        return own;
    }
};

}  // namespace

std::unique_ptr<Policy> make_owned() {
    return std::make_unique<Owned>();
}

}  // namespace heddle
