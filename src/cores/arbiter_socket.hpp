// A connection to the socket of an arbiter, for those that register and those that only look.
//
// The caller owns what it gets. Any thread.
#pragma once

#include <string>

#include "base/os.hpp"

namespace heddle {

/// Throws kLimit where the path does not fit into an address, kUnavailable where nobody listens there.
[[nodiscard]] Descriptor connect_to_arbiter(const std::string& path);

}  // namespace heddle
