// Vigil: for how long a thread looks for something before it sleeps.
//
// Waking up takes longer than most answers, so looking pays where they come soon, and takes a processor from
// those who work where they do not. So it is done as long as what came lately came soon, and not at all for a
// while where somebody else wants this CPU, which shows by looks that take long. It does not yield: since
// Linux 6.18 who does is not woken at once for some milliseconds. One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"
#include "base/spin_pause.hpp"

namespace heddle::memory {

class Vigil {
  public:
    explicit Vigil(Nanoseconds longest) : longest_(longest), most_(longest) {}

    /// True as soon as found() is; false when it has been looked for long enough.
    template <class Found>
    [[nodiscard]] bool keep(const Found& found) {
        began_ = clock_.now();
        if (resting_ > 0) {
            --resting_;
            return found();
        }
        for (Time before = began_;;) {
            for (int i = 0; i < kLooks; ++i) {
                if (found()) {
                    most_ = longest_;
                    return true;
                }
                spin_pause();
            }
            const Time now = clock_.now();
            if (now - before > kTurn) resting_ = kRest;
            if (now - began_ < most_ && resting_ == 0) {
                before = now;
                continue;
            }
            most_ = std::max(most_ / 2, longest_ / 8);
            return found();
        }
    }
    /// What the last keep() was for came then, after it. Of an earlier time: nothing is known.
    void came(Time when) {
        if (when >= began_ && when - began_ <= longest_) most_ = longest_;
    }

  private:
    static constexpr int kLooks = 32;
    /// So many looks take a tenth of that.
    static constexpr Nanoseconds kTurn = std::chrono::microseconds(20);
    static constexpr int kRest = 32;

    SteadyClock clock_;
    Nanoseconds longest_, most_;
    Time began_{};
    int resting_ = 0;
};

}  // namespace heddle::memory
