// Checks a synthetic machine's description before hwloc sees it.
//
// hwloc builds whatever is asked for, in time that grows with the square of a level's size and without a
// bound on memory; a description comes from a user. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// More CPUs than this are refused: hwloc needs about a second for them.
inline constexpr long kMaxSyntheticCpus = 4096;

struct SyntheticText {
    std::string text;
    long cpus;  ///< how many CPUs it describes
};

/// The description with single spaces, as hwloc wants it. The form is hwloc's: levels from the outside in,
/// each TYPE:COUNT for every object of the level before, "[numa]" for memory at the side, attributes in
/// parentheses; the last level is pu. Throws kBadInput, naming the part that is wrong.
[[nodiscard]] SyntheticText checked_synthetic(std::string_view description);

}  // namespace heddle
