// PushSeat: who pushes again and again does so without a lock and without a count that others share: it sits
// down, with a flow of its own that keeps short boxes from one push to the next (docs/STREAMS.md).
//
// The one who sits enters and leaves with two stores and two light fences. Whoever wants to know whether it
// is at work, or one of the boxes that it keeps, asks: it writes that it asks, passes a heavy fence, and
// looks whether the seat is busy. So either the asker sees that it is not, and then it has given up what it
// keeps; or the one who sits sees, when it leaves at the latest, that it was asked, and gives it up itself.
// While somebody waits for that it counts as one that has begun (Pressure).
//
// All but ask(): any thread or task, each with its own number. ask(): any thread, without a lock that is
// taken in Kept::let_go().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/asymmetric_fence.hpp"
#include "streams/flow.hpp"
#include "streams/pressure.hpp"

namespace heddle::streams {

class PushSeat {
  public:
    explicit PushSeat(Pressure& pressure) : pressure_(pressure) {}
    ~PushSeat() { (void)ask(For::kGood); }
    PushSeat(const PushSeat&) = delete;
    PushSeat& operator=(const PushSeat&) = delete;

    struct Seat;
    /// Null: the caller does not sit there now. Else leave() is to follow.
    [[nodiscard]] Seat* enter(uintptr_t who);
    /// The same, for one who is not at work in the network: takes the place where it is free, or its owner
    /// was found to be another one often. Null: he pushes as one that has begun.
    [[nodiscard]] Seat* sit_down(uintptr_t who);
    void leave(Seat& seat);
    /// Whether this one is at work there, who calls; then he is counted from now on, until he leaves.
    [[nodiscard]] bool counts(uintptr_t who);
    enum class For { kLook, kBox, kGood };
    /// True: somebody is at work there, will give up what it keeps when it leaves, and is counted until then.
    /// False: nobody is, and nothing is kept there; or somebody who has had to wait, and is counted already.
    /// kBox: a box was wanted that is kept. kGood: nobody is to sit down any more.
    bool ask(For what = For::kLook);

    struct Seat {
        Seat(uintptr_t its_owner, Pressure& pressure) : owner(its_owner), flow(&pressure) {}
        const uintptr_t owner;
        /// Written by the owner alone. Release: who sees that it has left sees what it did.
        std::atomic<bool> busy{false};
        /// Written under the mutex. Acquire, for the owner sees what was done with its flow.
        std::atomic<bool> asked{false};
        Flow flow;             ///< the owner's while it is busy; else under the mutex
        uint32_t alone = 0;    ///< the owner's: so many pushes more it keeps nothing when it leaves
        uint32_t penalty = 0;  ///< the owner's: what that was the last time
        bool wanted = false;   ///< a box that it keeps; under the mutex
        bool counted = false;  ///< its flow, by ask(); under the mutex
        bool retired = false;  ///< nobody enters any more; under the mutex
    };

  private:
    [[nodiscard]] bool may_stay(Seat& seat);
    void answer(Seat& seat);
    static void give_up(Seat& seat);

    /// An owner whose box was wanted keeps nothing for so many pushes; twice as many each time.
    static constexpr uint32_t kFirstPenalty = 256, kMostPenalty = 1U << 16;
    /// So often others may find the seat taken before it changes its owner; twice as often each time.
    static constexpr uint32_t kFirstMisses = 64;

    Pressure& pressure_;
    /// Null: nobody sits. Its seats live as long as this: an owner may still look at one that was retired.
    std::atomic<Seat*> current_{nullptr};
    std::mutex mutex_;
    std::vector<std::unique_ptr<Seat>> seats_;
    bool closed_ = false;
    std::atomic<uint32_t> misses_{0};                  ///< lost ones do not matter
    std::atomic<uint32_t> most_misses_{kFirstMisses};  ///< written under the mutex
};

inline PushSeat::Seat* PushSeat::enter(uintptr_t who) {
    Seat* const seat = current_.load(std::memory_order_acquire);
    if (seat == nullptr || seat->owner != who) return nullptr;
    if (seat->busy.load(std::memory_order_relaxed)) return nullptr;  // what he calls pushes, too
    seat->busy.store(true, std::memory_order_relaxed);
    light_fence();
    if (seat->asked.load(std::memory_order_acquire) && !may_stay(*seat)) return nullptr;
    return seat;
}

inline void PushSeat::leave(Seat& seat) {
    if (seat.alone > 0) {
        seat.flow.let_go();
        if (--seat.alone == 0) seat.flow.set_stays(true);
    }
    const bool was_counted = seat.flow.uncount();
    seat.busy.store(false, std::memory_order_release);
    light_fence();
    if (seat.asked.load(std::memory_order_relaxed)) answer(seat);
    if (was_counted) pressure_.end();
}

}  // namespace heddle::streams
