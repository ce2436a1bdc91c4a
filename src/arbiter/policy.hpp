// Policy: how many CPUs each client should hold when there are not enough for all.
//
// Pure arithmetic: no state of the arbiter, no clock. A policy is one file, policies/NAME.cpp or one that the
// build is told, which defines a subclass and heddle::make_NAME; docs/POLICIES.md tells how to add one. The
// arbiter turns targets into moves, core by core, and only while somebody lacks a CPU.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/id.hpp"

namespace heddle {

struct ClientTag;
using ClientId = Id<ClientTag>;

/// What one client asks for. All counts are CPUs; demand is already within [min, max] and the client's
/// affinity.
struct Claim {
    ClientId client;
    int demand = 0;
    int min = 0;
    int weight = 1;  ///< 1..1000
    int owned = 0;   ///< CPUs that are the client's own
    int held = 0;    ///< CPUs that it holds now
};

class Policy {
  public:
    virtual ~Policy() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// True where clients own the CPUs they register with and always win them back.
    [[nodiscard]] virtual bool has_owners() const { return false; }
    /// One target a claim: 0 <= target <= demand, and their sum is min(cpus, sum of demands).
    [[nodiscard]] virtual std::vector<int> targets(std::span<const Claim> claims, int cpus) const = 0;
};

/// "proportional", "owned", or another that was built in. Throws kInvalidArgument naming those that exist.
[[nodiscard]] std::unique_ptr<Policy> make_policy(std::string_view name);

/// Seed 002, Fig. 3, as arithmetic that other policies may use: one CPU for each active claim, the rest in
/// proportion to weight x (demand - 1), leftovers to the largest remainders, nobody above its demand.
[[nodiscard]] std::vector<int> apportion(std::span<const Claim> claims, int cpus);

}  // namespace heddle
