// When commands of the driver end. Any thread.
//
// Drivers tell of it by callbacks, but PoCL 3.1 tells nobody of a command that never ran since a user event
// which it waited for has failed; and where nobody has a reference to such a command it aborts the process.
// So an event whose end somebody wants to know is kept until then, and who lets a user event fail looks for
// others.
#pragma once

#include <functional>

#include "opencl/next.hpp"

namespace heddle::opencl {

/// As the driver knows it.
[[nodiscard]] cl_int drivers_status(cl_event event);

/// act(status), once, when the event has ended: in the driver's thread, here, or in look_for_failures().
/// False: it will not be.
[[nodiscard]] bool when_over(cl_event event, std::function<void(cl_int)> act);

/// A user event has failed, and with it what waited for it.
void look_for_failures();

}  // namespace heddle::opencl
