// The arbiter's status as text, for `heddle status` and `heddle top`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cores/observer.hpp"

namespace heddle::tool {

/// The arbiter in a line, then a table of its clients, and under each its components with what they have
/// done. `before` was taken so many seconds earlier: then it says how much they do a second, too. `astray`:
/// what strays() found.
[[nodiscard]] std::string status_text(const ArbiterSnapshot& status, const ArbiterSnapshot* before = nullptr,
                                      double seconds = 0, const std::map<uint32_t, CpuSet>& astray = {});

/// The status with the counts of this moment: they are asked for by the first look, and there at the second.
[[nodiscard]] ArbiterSnapshot counted_status(Observer& observer);

/// The cores as rows of at most `width` cells: a letter and, with `colour`, a background for each client, '.'
/// for a free core, and lower case for one whose holder was asked to leave.
[[nodiscard]] std::vector<std::string> core_map(const ArbiterSnapshot& status, int width, bool colour);

/// The letter that core_map shows for a client.
[[nodiscard]] char letter_of(uint32_t client);

}  // namespace heddle::tool
