// Which clock a driver reads. OpenCL does not say, so an instant is noted on each clock that it may be, until
// one of the driver's own commands has told which of them it is; where it is none, the distance is measured.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace heddle::opencl {

/// In nanoseconds of each clock.
struct Instant {
    static constexpr std::array kClocks{CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC, CLOCK_REALTIME};
    std::array<uint64_t, kClocks.size()> ns{};
    [[nodiscard]] static Instant now();
};

/// One of those, and what the driver's is ahead of it.
struct DriverClock {
    size_t clock = 0;
    uint64_t ahead_ns = 0;  // modulo 2^64
    [[nodiscard]] uint64_t at(const Instant& instant) const { return instant.ns[clock] + ahead_ns; }

    /// By what the driver told of an instant between two others, to within its resolution.
    [[nodiscard]] static DriverClock found(uint64_t drivers_ns, const Instant& before, const Instant& after,
                                           uint64_t resolution_ns);
};

}  // namespace heddle::opencl
