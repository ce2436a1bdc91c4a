// Linked into test programs. They and what they start are clients only of an arbiter that they name: the
// user's own would share its CPUs out among them and other programs.
#include <cstdlib>

namespace {

[[maybe_unused]] const int unmanaged = ::setenv("HEDDLE_ARBITER", "off", 1);

}  // namespace
