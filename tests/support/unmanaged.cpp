// Linked into test programs that are no clients of an arbiter: one that the user runs would share its CPUs
// out among them and other programs.
#include <cstdlib>

namespace {

[[maybe_unused]] const int unmanaged = ::setenv("HEDDLE_ARBITER", "off", 1);

}  // namespace
