// Steps: counts units of work, so that a test can tell how the cost of a decision grows, without a clock.
//
// One step is one client, one CPU or one core looked at, or one operation on a set of CPUs. Compiled in only
// where tests are built (HEDDLE_WITH_STEPS); anywhere else counting is nothing at all. Each thread has a
// count of its own.
#pragma once

namespace heddle {

inline constinit thread_local long steps_taken = 0;

}  // namespace heddle

#ifdef HEDDLE_WITH_STEPS
#define HEDDLE_STEPS(count) (heddle::steps_taken += static_cast<long>(count))
#else
#define HEDDLE_STEPS(count) (static_cast<void>(0))
#endif
