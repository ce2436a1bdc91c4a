// Bell: wakes one thread under the explorer. It stays rung until it is heard, as a packet on a socket does.
#pragma once

#include <atomic>
#include <cstdint>

#include "cores/futex.hpp"

namespace heddle::test {

class Bell {
  public:
    /// Any thread.
    void ring() {
        rung_.store(1, std::memory_order_release);
        futex_wake(rung_, 1);
    }
    /// One thread.
    void await() {
        while (rung_.exchange(0, std::memory_order_acquire) == 0) futex_wait(rung_, 0, Time::max());
    }

  private:
    std::atomic<uint32_t> rung_{0};
};

}  // namespace heddle::test
