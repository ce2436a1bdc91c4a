// Arithmetic that takes as long as it is told to.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace heddle::bench {

/// So many dependent multiplications.
inline long work(long steps, long value) {
    auto state = static_cast<uint64_t>(value) | 1;
    for (long i = 0; i < steps; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<long>(state >> 1);
}

/// How many take this long where nobody else is on the core. Takes some 10 ms.
inline long steps_for(double us) {
    constexpr long kSteps = 2'000'000;
    [[maybe_unused]] volatile long keep = 0;
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
        const auto start = std::chrono::steady_clock::now();
        keep = work(kSteps, i);
        best = std::min(
            best,
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    return static_cast<long>(us * kSteps / best);
}

}  // namespace heddle::bench
