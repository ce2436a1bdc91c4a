// Where code that runs in a task or kernel could run outside of it: allowance() is asked there, too, and what
// is made there is not to be confined to the CPU of the thread that makes it.
#pragma once

namespace heddle {

/// allowance() knows from now on. To be called before the first task or kernel; any thread, any number of
/// times.
void know_outer_affinity() noexcept;

}  // namespace heddle
