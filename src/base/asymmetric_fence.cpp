#include "base/asymmetric_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace heddle {
namespace {

bool membarrier(int command) noexcept {
    return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool registered() noexcept {
#ifdef __SANITIZE_THREAD__
    return false;  // it would see no order
#else
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
#endif
}

}  // namespace

bool light_fences_are_free = registered();

void heavy_fence() noexcept {
    if (!light_fences_are_free) return full_fence();
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
    if (registered() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
    // A filter of system calls that was set up since forbids it. What a core holds back of its writes is
    // seen by all within much less than this.
    full_fence();
    const timespec nap{0, 1'000'000};
    ::nanosleep(&nap, nullptr);
    full_fence();
}

}  // namespace heddle
