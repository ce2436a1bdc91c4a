// light_fence(), heavy_fence(): a full fence on either side of which one is free.
//
// For protocols of the form "write here, then look there" on both sides, where one side is passed all the
// time and the other seldom, mostly by who is about to sleep. A light fence and a heavy one order as two full
// fences do (full_fence.hpp), and so do two heavy ones; two light ones order nothing. The light one keeps the
// compiler from moving accesses across it and costs no instruction. The heavy one asks the kernel to have
// every thread of this process that runs at this moment pass a full fence (membarrier(2), some microseconds);
// those that do not run pass one before they do. So wherever the other thread is, what it wrote before that
// point is seen here, or it sees what was written here.
//
// Where the kernel refuses, as it is found when the library is loaded, both are full fences. Any thread.
// Source: P1202R5, "Asymmetric Fences"; membarrier(2).
#pragma once

#include <atomic>

#include "base/full_fence.hpp"

namespace heddle {

/// Written before main(), and by tests.
extern bool light_fences_are_free;

static inline void light_fence() noexcept {
    if (light_fences_are_free)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    else
        full_fence();
}

void heavy_fence() noexcept;

}  // namespace heddle
