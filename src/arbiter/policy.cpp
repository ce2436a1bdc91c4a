#include "arbiter/policy.hpp"

#include <fmt/format.h>

#include <array>

#include "heddle/error.hpp"

namespace heddle {

// One line a policy; each is defined in the file of its name.
std::unique_ptr<Policy> make_proportional();
std::unique_ptr<Policy> make_owned();

namespace {

struct Entry {
    std::string_view name;
    std::unique_ptr<Policy> (*make)();
};
constexpr std::array kPolicies = {Entry{"proportional", make_proportional}, Entry{"owned", make_owned}};

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
