// The pipeline of streams_pipeline.cpp by FastFlow, a thread a stage: a source, three stages that add one, a
// sink. The numbers lie in an array, and what goes from stage to stage is where.
#pragma once

#include <chrono>

/// How a thread waits for its neighbours: on a condition, or by looking again and again.
enum class FastFlowWaits { kBlocking, kSpinning };

struct FastFlowOutcome {
    std::chrono::duration<double> took;
    long sum;
};

/// Of 0 to count - 1. Throws std::runtime_error where FastFlow cannot run it.
[[nodiscard]] FastFlowOutcome fastflow_pipeline(long count, FastFlowWaits waits);
