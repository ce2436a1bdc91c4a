#include "streams/push_seat.hpp"

#include <algorithm>
#include <utility>

namespace heddle::streams {

PushSeat::Seat* PushSeat::sit_down(uintptr_t who) {
    if (current_.load(std::memory_order_relaxed) != nullptr) {
        const uint32_t misses = misses_.load(std::memory_order_relaxed) + 1;
        misses_.store(misses < most_misses_.load(std::memory_order_relaxed) ? misses : 0,
                      std::memory_order_relaxed);
        if (misses < most_misses_.load(std::memory_order_relaxed)) return nullptr;
    }
    const std::lock_guard guard(mutex_);
    if (closed_) return nullptr;
    if (Seat* const before = current_.load(std::memory_order_relaxed)) {
        before->asked.store(true, std::memory_order_release);
        heavy_fence();
        if (before->busy.load(std::memory_order_acquire)) return nullptr;  // it answers nobody in particular
        before->flow.let_go();
        before->retired = true;
        most_misses_.store(std::min(2 * most_misses_.load(std::memory_order_relaxed), uint32_t{1} << 30),
                           std::memory_order_relaxed);
    }
    Seat* const seat = seats_.emplace_back(std::make_unique<Seat>(who, pressure_)).get();
    seat->flow.set_stays(true);
    seat->busy.store(true, std::memory_order_relaxed);
    current_.store(seat, std::memory_order_release);
    return seat;
}

bool PushSeat::counts(uintptr_t who) {
    Seat* const seat = current_.load(std::memory_order_acquire);
    if (seat == nullptr || seat->owner != who || !seat->busy.load(std::memory_order_relaxed)) return false;
    (void)seat->flow.count();
    return true;
}

/// Under the mutex, of the owner.
void PushSeat::give_up(Seat& seat) {
    seat.flow.let_go();
    if (!std::exchange(seat.wanted, false)) return;
    seat.penalty = std::clamp(2 * seat.penalty, kFirstPenalty, kMostPenalty);
    seat.alone = seat.penalty;
    seat.flow.set_stays(false);
}

/// Of the owner, who has entered and finds that it was asked. False: it has left again.
bool PushSeat::may_stay(Seat& seat) {
    const std::lock_guard guard(mutex_);
    give_up(seat);
    // One that is counted is asked until it leaves.
    if (!seat.retired && !seat.counted) seat.asked.store(false, std::memory_order_release);
    if (seat.retired) seat.busy.store(false, std::memory_order_release);
    return !seat.retired;
}

/// Of the owner, who has left and finds that it was asked.
void PushSeat::answer(Seat& seat) {
    bool counted = false;
    {
        const std::lock_guard guard(mutex_);
        give_up(seat);
        seat.counted = false;
        counted = seat.flow.uncount();  // since it looked, in leave()
        if (!seat.retired) seat.asked.store(false, std::memory_order_release);
    }
    if (counted) pressure_.end();  // which may ask again
}

bool PushSeat::ask(For what) {
    if (current_.load(std::memory_order_acquire) == nullptr && what != For::kGood) return false;
    const std::lock_guard guard(mutex_);
    if (what == For::kGood) closed_ = true;
    Seat* const seat = current_.load(std::memory_order_relaxed);
    if (seat == nullptr) return false;
    if (what == For::kBox) seat->wanted = true;
    if (!seat->counted) {
        seat->asked.store(true, std::memory_order_release);
        heavy_fence();
    }
    if (seat->busy.load(std::memory_order_acquire)) {
        // Its own count, which it begins itself where it has to wait first: one for both.
        if (!seat->flow.count()) return false;
        seat->counted = true;
        return true;
    }
    seat->flow.let_go();
    if (closed_) {
        seat->retired = true;
        current_.store(nullptr, std::memory_order_release);
    } else if (!seat->counted && !seat->wanted) {
        seat->asked.store(false, std::memory_order_release);
    }
    return false;
}

}  // namespace heddle::streams
