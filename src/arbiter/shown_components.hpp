// What a client's page says about its components (cores/protocol.h), for the status. No state; the server's
// thread. The page is hostile: each word is copied once, numbers are checked, names cleaned. A client that
// writes it meanwhile is shown with a name of a moment ago, or one that it never had; nothing is decided by
// it.
#pragma once

#include <string>
#include <vector>

#include "cores/protocol.h"
#include "heddle/cpu_set.hpp"

namespace heddle {

struct ShownComponent {
    std::string name;  ///< not empty, and fit for a terminal
    CpuSet cpus;       ///< not empty
    friend bool operator==(const ShownComponent&, const ShownComponent&) = default;
};

/// Who uses these CPUs of the client's, as it says; without those of which it does not, or whose user has no
/// name. Each CPU is in one at most.
[[nodiscard]] std::vector<ShownComponent> shown_components(const heddle_client_page& page,
                                                           const CpuSet& held);

}  // namespace heddle
