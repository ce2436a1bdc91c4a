// A timeline seen by its tasks: a row for each worker in place of a CPU, and in place of the programs the
// names of what the workers did. So each drawing of programs on CPUs is one of tasks on workers, too.
#pragma once

#include "trace/timeline.hpp"

namespace heddle::trace {

/// Does it tell of work and of nobody's CPUs? Then a drawing of CPUs would be empty.
[[nodiscard]] bool only_work(const Timeline& timeline);

/// The innermost work has the row; while a worker only waits, nobody. A name's `held` is how many workers are
/// in it, its `waiting` how many of its tasks are paused. Names come in the order of their first work, those
/// beyond Timeline::kMostTaskNames together as "others".
[[nodiscard]] Timeline by_task(const Timeline& timeline);

}  // namespace heddle::trace
