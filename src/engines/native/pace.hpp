// Pace: decides when a worker naps, since others do what there is to do as fast without it.
//
// Tasks of some tens of nanoseconds cost more to hand over than to run: records and queues go back and forth
// between two caches. So a worker looks, every kWindow, at how many tasks it has run that others inserted,
// and how many tasks all others have run or inserted meanwhile. Where both are fine (fine_tasks.hpp), it
// naps, then runs a few, to see whether they are coarser now, and naps again. A pure decision: no clock, no
// threads. Owned by one worker.
#pragma once

#include <cstdint>
#include <utility>

#include "base/clock.hpp"

namespace heddle {

class Pace {
  public:
    static constexpr Nanoseconds kWindow = std::chrono::microseconds(10);

    /// What a worker sees: the counts are of tasks so far, and only rise.
    struct Look {
        Time now;
        uint64_t handed;   ///< run by this worker, less those that it inserted
        uint64_t others;   ///< run or inserted by all other threads
        Nanoseconds fine;  ///< tasks that take less on average are not worth being handed over
    };

    enum class Advice : uint8_t {
        kGoOn,    ///< it is too early to tell
        kCoarse,  ///< this worker is of use
        kNap,
    };
    /// Some tasks took so long: all workers are of use.
    [[nodiscard]] static bool coarse(uint64_t tasks, Nanoseconds took, Nanoseconds fine) {
        return tasks > 0 && !are_fine(tasks, took, fine);
    }
    /// The worker comes, perhaps after long: what was before says nothing.
    void came(const Look& look) {
        if (look.now - before_.now >= kLongest) before_ = look;
    }
    /// The worker has run some tasks.
    [[nodiscard]] Advice ran(const Look& look) {
        const Nanoseconds took = look.now - before_.now;
        if (took < kWindow && !probing_) return Advice::kGoOn;
        const bool nap = took < kLongest && are_fine(look.handed - before_.handed, took, look.fine) &&
                         (probing_ || are_fine(look.others - before_.others, took, look.fine));
        before_ = look;
        probing_ = false;
        return nap ? Advice::kNap : Advice::kCoarse;
    }
    /// There were none. True: it naps all the same, since others go on and would have to wake it at once.
    /// That is so after a nap, and where it is `alone`, on the CPU of who inserts.
    [[nodiscard]] bool found_none(const Look& look, bool alone) {
        if (std::exchange(probing_, false)) return true;
        const bool nap =
            alone && static_cast<int64_t>(look.others - before_.others) * kWakeUp > look.now - before_.now;
        before_ = look;
        return nap;
    }
    /// It has napped, and looks whether it should again.
    [[nodiscard]] bool probing() const { return probing_; }
    /// The worker has napped. True: others do well, and this worker only looks whether that is still right.
    [[nodiscard]] bool napped(const Look& look) {
        probing_ = are_fine(look.others - before_.others, look.now - before_.now, look.fine);
        before_ = look;
        return probing_;
    }

  private:
    /// To wake a thread, several times over.
    static constexpr Nanoseconds kWakeUp = std::chrono::microseconds(20);
    /// Longer windows have a sleep in them.
    static constexpr Nanoseconds kLongest = std::chrono::milliseconds(1);

    [[nodiscard]] static bool are_fine(uint64_t tasks, Nanoseconds took, Nanoseconds fine) {
        return static_cast<int64_t>(tasks) * fine > took;
    }

    Look before_{};
    bool probing_ = false;
};

}  // namespace heddle
