// Pace: decides when a worker naps, since others do what there is to do as fast without it.
//
// Tasks of some tens of nanoseconds cost more to hand over than to run: records and queues go back and forth
// between two caches. So a worker looks, every kWindow, at how many tasks it has run that others inserted,
// and how many tasks all others have run or inserted meanwhile. Where both are more than one in kFine, it
// naps, then runs a few, to see whether they are coarser now, and naps again. A pure decision: no clock, no
// threads. Owned by one worker.
#pragma once

#include <cstdint>
#include <utility>

#include "base/clock.hpp"

namespace heddle {

class Pace {
  public:
    /// Tasks that take less on average are not worth being handed over.
    static constexpr Nanoseconds kFine{400};
    static constexpr Nanoseconds kWindow = std::chrono::microseconds(10);

    /// Of tasks so far, counts that only rise.
    struct Counts {
        uint64_t handed;  ///< run by this worker, less those that it inserted
        uint64_t others;  ///< run or inserted by all other threads
    };

    enum class Advice : uint8_t {
        kGoOn,    ///< it is too early to tell
        kCoarse,  ///< this worker is of use
        kNap,
    };
    /// Some tasks took so long: all workers are of use.
    [[nodiscard]] static bool coarse(uint64_t tasks, Nanoseconds took) {
        return tasks > 0 && !fine(tasks, took);
    }
    /// The worker has run some tasks.
    [[nodiscard]] Advice ran(Time now, const Counts& counts) {
        const Nanoseconds took = now - since_;
        if (took < kWindow && !probing_) return Advice::kGoOn;
        const bool nap = took < kLongest && fine(counts.handed - before_.handed, took) &&
                         (probing_ || fine(counts.others - before_.others, took));
        begin(now, counts);
        probing_ = false;
        return nap ? Advice::kNap : Advice::kCoarse;
    }
    /// There were none. True: it naps all the same, since others go on and would have to wake it at once.
    /// That is so after a nap, and where it is `alone`, on the CPU of who inserts.
    [[nodiscard]] bool found_none(Time now, const Counts& counts, bool alone) {
        if (std::exchange(probing_, false)) return true;
        const bool nap =
            alone && static_cast<int64_t>(counts.others - before_.others) * kWakeUp > now - since_;
        begin(now, counts);
        return nap;
    }
    /// It has napped, and looks whether it should again.
    [[nodiscard]] bool probing() const { return probing_; }
    /// The worker has napped. True: others do well, and this worker only looks whether that is still right.
    [[nodiscard]] bool napped(Time now, const Counts& counts) {
        probing_ = fine(counts.others - before_.others, now - since_);
        begin(now, counts);
        return probing_;
    }

  private:
    /// To wake a thread, several times over.
    static constexpr Nanoseconds kWakeUp = std::chrono::microseconds(20);
    /// Longer windows have a sleep in them.
    static constexpr Nanoseconds kLongest = std::chrono::milliseconds(1);

    [[nodiscard]] static bool fine(uint64_t tasks, Nanoseconds took) {
        return static_cast<int64_t>(tasks) * kFine > took;
    }
    void begin(Time now, const Counts& counts) {
        since_ = now;
        before_ = counts;
    }

    Time since_{};
    Counts before_{};
    bool probing_ = false;
};

}  // namespace heddle
