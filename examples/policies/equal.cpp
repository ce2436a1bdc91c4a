// Policy "equal": every program gets the same number of CPUs, one at a time in turn; what one does not need
// goes to the others. Demand, minimum and weight beyond that count for nothing.
//
//   cmake --preset release -DHEDDLE_POLICIES=$PWD/examples/policies/equal.cpp
//   heddled --policy equal
#include "arbiter/policy.hpp"

namespace heddle {
namespace {

class Equal final : public Policy {
  public:
    [[nodiscard]] std::string_view name() const override { return "equal"; }
    [[nodiscard]] std::vector<int> targets(std::span<const Claim> claims, int cpus) const override {
        std::vector<int> portions(claims.size(), 0);
        for (bool given = true; given && cpus > 0;) {
            given = false;
            for (size_t i = 0; i < claims.size() && cpus > 0; ++i) {
                if (portions[i] == claims[i].demand) continue;
                ++portions[i];
                --cpus;
                given = true;
            }
        }
        return portions;
    }
};

}  // namespace

std::unique_ptr<Policy> make_equal() {
    return std::make_unique<Equal>();
}

}  // namespace heddle
