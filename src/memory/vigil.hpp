// Vigil: for how long a thread looks for something before it sleeps.
//
// Waking up takes longer than most answers, so looking pays where they come soon, and takes a processor from
// those who work where they do not. So it is done as long as what came lately came soon, and not at all for a
// while where somebody else wants this CPU, which a yield that takes long shows. One thread at a time.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"
#include "base/spin_pause.hpp"

namespace heddle::memory {

class Vigil {
  public:
    explicit Vigil(Nanoseconds longest) : longest_(longest), now_(longest) {}

    /// True as soon as found() is; false when it has been looked for long enough.
    template <class Found>
    [[nodiscard]] bool keep(const Found& found) {
        began_ = clock_.now();
        if (resting_ > 0) {
            --resting_;
            return found();
        }
        while (true) {
            for (int i = 0; i < kLooks; ++i) {
                if (found()) return true;
                spin_pause();
            }
            const Time before = clock_.now();
            if (before - began_ >= now_) {
                now_ = std::max(now_ / 2, longest_ / 8);
                return found();
            }
            ::sched_yield();
            if (clock_.now() - before < kTurn) continue;
            resting_ = kRest;
            return found();
        }
    }
    /// What the last keep() was for has come, then or later.
    void came() {
        if (clock_.now() - began_ <= longest_) now_ = longest_;
    }

  private:
    static constexpr int kLooks = 32;
    /// A yield without anybody else takes a tenth of that.
    static constexpr Nanoseconds kTurn = std::chrono::microseconds(5);
    static constexpr int kRest = 32;

    SteadyClock clock_;
    Nanoseconds longest_, now_;
    Time began_{};
    int resting_ = 0;
};

}  // namespace heddle::memory
