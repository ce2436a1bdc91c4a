#include "arbiter/policy.hpp"

#include <fmt/format.h>

#include <array>

#include "heddle/error.hpp"

namespace heddle {

// The build lists the files of policies in policies.inc, a line POLICY(name) each (cmake/Policies.cmake).
#define POLICY(name) std::unique_ptr<Policy> make_##name();
#include "policies.inc"
#undef POLICY

namespace {

struct Entry {
    std::string_view name;
    std::unique_ptr<Policy> (*make)();
};
#define POLICY(name) Entry{#name, make_##name},
constexpr std::array kPolicies = {
#include "policies.inc"
};
#undef POLICY

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name) {
    for (const Entry& entry : kPolicies)
        if (entry.name == name) return entry.make();
    std::string known;
    for (const Entry& entry : kPolicies) known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there is no policy '{}'; there are: {}", name, known));
}

}  // namespace heddle
