// ParallelME's run-time (seed 004) on heddle's devices, without Java: host pointers in place of its arrays.
// Found with -I<prefix>/include/heddle/compat as <parallelme/ParallelME.hpp>; linked with libheddle.so.
// docs/DEVICES.md.
#pragma once

#include "../parallelme/Buffer.hpp"
#include "../parallelme/Device.hpp"
#include "../parallelme/Kernel.hpp"
#include "../parallelme/Program.hpp"
#include "../parallelme/Runtime.hpp"
#include "../parallelme/Scheduler.hpp"
#include "../parallelme/SchedulerFCFS.hpp"
#include "../parallelme/SchedulerHEFT.hpp"
#include "../parallelme/SchedulerPAMS.hpp"
#include "../parallelme/Task.hpp"
