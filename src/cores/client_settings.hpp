// What HEDDLE_* variables say of this process as a client of the arbiter.
//
// No state; any thread, while none changes the environment. A value that cannot be is an error and not
// ignored: who sets HEDDLE_OWN=junk would never learn otherwise that the process owns nothing.
#pragma once

#include "cores/arbiter_client.hpp"

namespace heddle {

/// Throws kBadInput where a variable has a value that it cannot have. `heddle run` refuses the same values.
void check_client_settings();

/// The options, with what HEDDLE_NAME, HEDDLE_MIN, HEDDLE_MAX, HEDDLE_WEIGHT and HEDDLE_OWN say in place of
/// theirs, and with a name and allowed CPUs. Throws kBadInput as above, kInvalidArgument for counts that make
/// no sense together.
[[nodiscard]] ArbiterClientOptions with_settings(ArbiterClientOptions options);

}  // namespace heddle
