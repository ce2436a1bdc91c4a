// Pace: decides when a worker naps, since others do what there is to do as fast without it.
//
// Tasks of some tens of nanoseconds cost more to hand over than to run: records and queues go back and forth
// between two caches. So a worker looks, every kWindow, at how many tasks it has run that others inserted,
// and how many tasks all others have run or inserted meanwhile. Where both are fine (fine_tasks.hpp), it
// naps, then runs a few, to see whether they are coarser now, and naps again. Tasks that are handed over may
// take so long only because they are: where they take less than a microsecond the worker tries, now and then,
// how the others get on without it, and naps as long as they are as fast. A pure decision: no clock, no
// threads. Owned by one worker.
#pragma once

#include <algorithm>
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
        kGoOn,    ///< it is too early to tell, or hard to
        kCoarse,  ///< this worker is of use, and so are those that nap
        kNap,     ///< for longest_nap()
    };
    /// Some tasks took so long: all workers are of use.
    [[nodiscard]] static bool coarse(uint64_t tasks, Nanoseconds took, Nanoseconds limit = kDoubtful) {
        return tasks > 0 && !take_less_than(limit, tasks, took);
    }
    /// The worker comes, perhaps after long: what was before says nothing.
    void came(const Look& look) {
        if (look.now - before_.now >= kLongest) before_ = look;
    }
    /// The worker has run some tasks.
    [[nodiscard]] Advice ran(const Look& look) {
        const Seen seen = since_before(look);
        if (seen.took < kWindow && !probing_) return Advice::kGoOn;
        before_ = look;
        const bool probed = std::exchange(probing_, false);
        if (seen.took >= kLongest) return Advice::kCoarse;
        const bool others_are_fine = take_less_than(look.fine, seen.others, seen.took);
        if (take_less_than(look.fine, seen.handed, seen.took) && (probed || others_are_fine))
            return Advice::kNap;
        if (!take_less_than(kDoubtful, seen.handed, seen.took)) {
            together_ = {};
            alone_is_as_fast_ = false;
            return Advice::kCoarse;
        }
        if (probed) return alone_is_as_fast_ ? Advice::kNap : Advice::kGoOn;
        together_ += seen;
        trying_ = together_.took >= until_trial_;
        return trying_ ? Advice::kNap : Advice::kGoOn;
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
    /// How long it naps now.
    [[nodiscard]] Nanoseconds longest_nap(Nanoseconds usual) const { return trying_ ? kTrial : usual; }
    /// It has napped, and looks whether it should again.
    [[nodiscard]] bool probing() const { return probing_; }
    /// The worker has napped. True: others do well, and this worker only looks whether that is still right.
    [[nodiscard]] bool napped(const Look& look) {
        const Seen seen = since_before(look);
        before_ = look;
        if (std::exchange(trying_, false)) {
            alone_is_as_fast_ = others_alone_are_as_fast(seen);
            naps_alone_ = 0;
            if (!alone_is_as_fast_) {
                together_ = {};
                until_trial_ = std::min(2 * until_trial_, kLongestUntilTrial);
            }
        } else if (alone_is_as_fast_) {
            alone_is_as_fast_ = ++naps_alone_ < kMostNapsAlone && others_alone_are_as_fast(seen);
            if (!alone_is_as_fast_) {
                together_ = {};
                until_trial_ = kUntilTrial;
            }
        }
        probing_ = alone_is_as_fast_ || take_less_than(look.fine, seen.others, seen.took);
        return probing_;
    }

  private:
    struct Seen {
        uint64_t handed = 0, others = 0;
        Nanoseconds took{0};
        void operator+=(const Seen& more) {
            handed += more.handed;
            others += more.others;
            took += more.took;
        }
    };
    /// To wake a thread, several times over.
    static constexpr Nanoseconds kWakeUp = std::chrono::microseconds(20);
    /// Longer windows have a sleep in them.
    static constexpr Nanoseconds kLongest = std::chrono::milliseconds(1);
    /// To be handed over makes no task so long: those that take longer are coarse without a trial.
    static constexpr Nanoseconds kDoubtful = std::chrono::microseconds(1);
    static constexpr Nanoseconds kTrial = std::chrono::microseconds(50);
    /// How long they are at work together before it tries: at first, and when trials have shown it of use.
    static constexpr Nanoseconds kUntilTrial = std::chrono::microseconds(100),
                                 kLongestUntilTrial = std::chrono::milliseconds(25);
    /// After so many naps it looks anew how fast they are together.
    static constexpr int kMostNapsAlone = 64;

    [[nodiscard]] static bool take_less_than(Nanoseconds limit, uint64_t tasks, Nanoseconds took) {
        return static_cast<int64_t>(tasks) * limit > took;
    }
    [[nodiscard]] Seen since_before(const Look& look) const {
        return {look.handed - before_.handed, look.others - before_.others, look.now - before_.now};
    }
    [[nodiscard]] bool others_alone_are_as_fast(const Seen& alone) const {
        return static_cast<double>(alone.others) * static_cast<double>(together_.took.count()) >=
               static_cast<double>(together_.handed + together_.others) *
                   static_cast<double>(alone.took.count());
    }

    Look before_{};
    bool probing_ = false, trying_ = false;
    Seen together_;  ///< since the last trial, or before the one that showed them as fast alone
    Nanoseconds until_trial_ = kUntilTrial;
    bool alone_is_as_fast_ = false;
    int naps_alone_ = 0;
};

}  // namespace heddle
