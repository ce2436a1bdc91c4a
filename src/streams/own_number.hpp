// Who calls: a task, or a thread outside of tasks.
#pragma once

#include <cstdint>

namespace heddle::streams {

/// Of the calling task, or of the thread outside of tasks; never 0.
[[nodiscard]] uintptr_t own_number();

}  // namespace heddle::streams
