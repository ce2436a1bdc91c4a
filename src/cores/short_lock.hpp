// ShortLock: a one-word lock for sections of some tens of nanoseconds that call nothing foreign.
//
// Taking it is one exchange and giving it back one plain store, which is what makes lend + reclaim cost less
// than half of what it costs with std::mutex. Who waits spins a little, then yields, then sleeps in growing
// steps, so that a holder that lost its core gets one. Within one process only; it is not recursive, not
// fair, and a thread must not be cancelled inside.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/spin_pause.hpp"

namespace heddle {

/// How who waits for a section of some tens of nanoseconds passes the time.
class Patience {
  public:
    void wait() noexcept {
        if (round_ < kSpins) {
            spin_pause();
        } else if (round_ < kSpins + kYields) {
            std::this_thread::yield();
        } else {
            const timespec nap{0, std::min(1'000L * (round_ - kSpins - kYields + 1), 100'000L)};
            nanosleep(&nap, nullptr);
        }
        ++round_;
    }

  private:
    static constexpr int kSpins = 100;
    static constexpr int kYields = 50;
    int round_ = 0;
};

class ShortLock {
  public:
    void lock() noexcept {
        // acquire: sees all that the previous holder wrote before its release store in unlock().
        if (held_.exchange(true, std::memory_order_acquire)) wait();
    }
    void unlock() noexcept { held_.store(false, std::memory_order_release); }

  private:
    void wait() noexcept {
        for (Patience patience;; patience.wait())
            if (!held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire))
                return;
    }

    std::atomic<bool> held_{false};
};

}  // namespace heddle
