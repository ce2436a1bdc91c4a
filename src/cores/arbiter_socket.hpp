// A connection to the socket of an arbiter, for those that register and those that only look.
//
// The caller owns what it gets. Any thread.
#pragma once

#include <string>

#include "base/os.hpp"
#include "heddle/error.hpp"

namespace heddle {

/// Nobody listens: until somebody begins to, it is of no use to try again.
class NobodyListens : public Error {
  public:
    using Error::Error;
};

/// Throws kLimit where the path does not fit into an address, NobodyListens, kUnavailable for other reasons.
[[nodiscard]] Descriptor connect_to_arbiter(const std::string& path);

}  // namespace heddle
