// What a client's page says about its components (cores/protocol.h), for the status. No state; the server's
// thread. The page is hostile: each word is copied once, numbers are checked, names cleaned. A client that
// writes it meanwhile is shown with a name of a moment ago, or one that it never had; nothing is decided by
// it.
#pragma once

#include <string>
#include <vector>

#include "cores/protocol.h"
#include "heddle/cores.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle {

struct ShownComponent {
    std::string name;  ///< not empty, and fit for a terminal
    CpuSet cpus;
    WorkCounts work = {};
    friend bool operator==(const ShownComponent&, const ShownComponent&) = default;
};

/// Those that have a name, and use CPUs of the client's or have had work, as it says; HEDDLE_COMPONENTS at
/// most. Each CPU is in one at most.
[[nodiscard]] std::vector<ShownComponent> shown_components(const heddle_client_page& page,
                                                           const CpuSet& held);

/// Has it any to ask about?
[[nodiscard]] bool shows_components(const heddle_client_page& page) noexcept;

}  // namespace heddle
