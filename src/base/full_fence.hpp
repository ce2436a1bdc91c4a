// full_fence(): orders all before it against all after it, in whichever threads.
//
// For protocols of the form "write here, then look there" with a full fence on both sides: one of the two
// sees the other. Any thread.
#pragma once

#include <atomic>

namespace heddle {

#ifdef __SANITIZE_THREAD__
/// ThreadSanitizer does not know fences; a read-modify-write that all take part in does as well.
inline std::atomic<int> fences_meet{0};
#endif

/// Static, because the explorer's tests link two compilations of it (tests/explored).
static inline void full_fence() noexcept {
#ifdef __SANITIZE_THREAD__
    fences_meet.fetch_add(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace heddle
