// Patience: how long a thread sleeps between two looks at messages, of which MPI does not tell that they
// came: not at all for a while after one came, then longer and longer.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace heddle::memory {

class Patience {
  public:
    void restart() {
        since_ = std::chrono::steady_clock::now();
        pause_ = kShortest;
    }
    void nap() {
        if (std::chrono::steady_clock::now() - since_ < kAwake) return std::this_thread::yield();
        std::this_thread::sleep_for(pause_);
        pause_ = std::min(2 * pause_, kLongest);
    }

  private:
    static constexpr std::chrono::microseconds kAwake{50}, kShortest{20}, kLongest{1000};

    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    std::chrono::microseconds pause_ = kShortest;
};

}  // namespace heddle::memory
