#include "opencl/driver_clock.hpp"

namespace heddle::opencl {

Instant Instant::now() {
    constexpr uint64_t kNsPerSecond = 1'000'000'000;
    Instant instant;
    for (size_t i = 0; i < kClocks.size(); ++i) {
        timespec time{};
        ::clock_gettime(kClocks[i], &time);
        instant.ns[i] =
            static_cast<uint64_t>(time.tv_sec) * kNsPerSecond + static_cast<uint64_t>(time.tv_nsec);
    }
    return instant;
}

DriverClock DriverClock::found(uint64_t drivers_ns, const Instant& before, const Instant& after,
                               uint64_t resolution_ns) {
    for (size_t i = 0; i < Instant::kClocks.size(); ++i)
        if (drivers_ns + resolution_ns >= before.ns[i] && drivers_ns <= after.ns[i] + resolution_ns)
            return {i, 0};
    return {0, drivers_ns - before.ns[0]};
}

}  // namespace heddle::opencl
