// Whether a wait would pause something: for libraries that have a wait of their own beside heddle's.
#pragma once

#include "heddle/export.hpp"

namespace heddle {

/// The calling thread is in a task, or in a kernel of an Offload. Any thread.
[[nodiscard]] HEDDLE_API bool in_task() noexcept;

}  // namespace heddle
