// ShortLock: a one-word lock for sections of some tens of nanoseconds that call nothing foreign.
//
// Taking it is one exchange and giving it back one plain store, which is what makes lend + reclaim cost less
// than half of what it costs with std::mutex. Who waits spins a little, then yields, then sleeps in growing
// steps, so that a holder that lost its core gets one. It is not fair; but who has slept several times
// for it has it next, and not a thread that takes it again and again. Within one process only; it is not
// recursive, and a thread must not be cancelled inside.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

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
    /// It has slept several times.
    [[nodiscard]] bool is_at_its_end() const noexcept { return round_ >= kSpins + kYields + kNaps; }

  private:
    static constexpr int kSpins = 100;
    static constexpr int kYields = 50;
    static constexpr int kNaps = 4;
    int round_ = 0;
};

class ShortLock {
  public:
    void lock() noexcept {
        // acquire: sees all that the previous holder wrote before its release store in unlock().
        if (some_starve() || held_.exchange(true, std::memory_order_acquire)) wait();
    }
    void unlock() noexcept { held_.store(false, std::memory_order_release); }

  private:
    /// Not seen by a sanitizer, nor by the explorer, which works with one: it orders nothing, and would give
    /// the explorer a hundred times as many executions to look at.
    [[nodiscard, gnu::no_sanitize_thread]] bool some_starve() const noexcept {
        return starved_.load(std::memory_order_relaxed) != 0;
    }

    /// Not inlined, so that lock() is.
    [[gnu::noinline]] void wait() noexcept {
        bool starves = false;
        for (Patience patience;; patience.wait()) {
            if (patience.is_at_its_end() && !std::exchange(starves, true))
                starved_.fetch_add(1, std::memory_order_relaxed);
            if (!starves && some_starve()) continue;
            if (!held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire))
                break;
        }
        if (starves) starved_.fetch_sub(1, std::memory_order_relaxed);
    }

    std::atomic<bool> held_{false};
    std::atomic<uint16_t> starved_{0};  ///< threads; nobody else takes it as long as there are some
};

}  // namespace heddle
