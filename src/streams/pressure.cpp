#include "streams/pressure.hpp"

#include <algorithm>
#include <utility>

#include "streams/own_number.hpp"
#include "streams/withdraw.hpp"

namespace heddle::streams {

void Pressure::end() {
    // The last one finds all others waiting. Acquire and release: it sees what they wrote to waiters_.
    if (active_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (waiter_count_.load(std::memory_order_relaxed) > 0) {
        if (uncounted && uncounted()) return;
        const std::lock_guard guard(mutex_);
        // Somebody may have begun meanwhile; growing a bound then is no error.
        if (active_.load(std::memory_order_acquire) > 0) return;
        if (!waiters_.empty()) {
            // Who settles does not count on others.
            if (!settling_.empty() || !is_emptied_outside()) grow(nullptr);
            return;
        }
    }
    if (settling_count_.load(std::memory_order_relaxed) > 0) tell_of_quiet();
    if (on_quiet) on_quiet();
}

bool Pressure::is_emptied_outside() const {
    return std::ranges::any_of(waiters_, [&](const Waiter* one) {
        const uintptr_t outside = one->full->outside.load(std::memory_order_relaxed);
        return outside != 0 && std::ranges::find(waiters_, outside, &Waiter::who) == waiters_.end();
    });
}

Pressure::Waiter* Pressure::holder_of(const Gauge& queue) const {
    const auto found = std::ranges::find_if(
        waiters_, [&](const Waiter* one) { return std::ranges::find(one->held, &queue) != one->held.end(); });
    return found == waiters_.end() ? nullptr : *found;
}

bool Pressure::waits_for_itself(const Waiter& one) const {
    const Waiter* at = &one;
    for (size_t i = 0; i < waiters_.size() && at != nullptr; ++i) {
        at = holder_of(*at->full);
        if (at == &one) return true;
    }
    return false;
}

void Pressure::grow(Waiter* circle) {
    // First those that do not count: what is before a box may wait for order alone.
    const auto is_smaller = [](const Gauge& a, const Gauge& b) {
        return std::pair(a.counts, a.bound.load(std::memory_order_relaxed)) <
               std::pair(b.counts, b.bound.load(std::memory_order_relaxed));
    };
    Gauge *room = nullptr, *smallest = nullptr;
    const auto look_at = [&](const Waiter& one) {
        if (room == nullptr && !one.still_full()) room = one.full;
        if (smallest == nullptr || is_smaller(*one.full, *smallest)) smallest = one.full;
    };
    if (circle == nullptr) {
        for (const Waiter* one : waiters_) look_at(*one);
    } else {
        const Waiter* at = circle;
        do {
            look_at(*at);
            at = holder_of(*at->full);
        } while (at != circle);
    }
    if (room != nullptr) return release(*room);
    const size_t bound = smallest->bound.load(std::memory_order_relaxed);
    if (bound > kNeverGrows / 2) return;
    if (smallest->counts && on_most && bound > most / 2) {
        on_most(*smallest);
        return release_all();
    }
    smallest->bound.store(2 * bound, std::memory_order_relaxed);
    if (smallest->counts) growths_.fetch_add(1, std::memory_order_relaxed);
    release(*smallest);
}

bool Pressure::quiet() {
    if (uncounted && uncounted()) return false;
    const std::lock_guard guard(mutex_);
    return active_.load(std::memory_order_acquire) == 0 && waiters_.empty();
}

void Pressure::tell_of_quiet() {
    const std::lock_guard guard(mutex_);
    for (BlockCondition* one : settling_) one->signal();
    settling_.clear();
    settling_count_.store(0, std::memory_order_relaxed);
}

void Pressure::wait_until_quiet() {
    while (!quiet()) {
        BlockCondition told;
        {
            const std::lock_guard guard(mutex_);
            settling_.push_back(&told);
            settling_count_.store(settling_.size(), std::memory_order_relaxed);
        }
        // It may have become quiet before that.
        begin();
        end();
        block_or_withdraw(told, [&] {
            const std::lock_guard guard(mutex_);
            const bool was_there = std::erase(settling_, &told) > 0;
            settling_count_.store(settling_.size(), std::memory_order_relaxed);
            return was_there;
        });
    }
}

bool Pressure::wait(Gauge& full, const std::function<bool()>& still_full, const Held& held) {
    Waiter waiter{&full, own_number(), still_full, held, {}};
    {
        const std::lock_guard guard(mutex_);
        waiters_.push_back(&waiter);
        // Announced before the last look: who empties the queue after it sees the waiter.
        full.waiting.fetch_add(1, std::memory_order_seq_cst);
        if (stopped_ || !still_full()) {
            waiters_.pop_back();
            full.waiting.fetch_sub(1, std::memory_order_relaxed);
            return !stopped_;
        }
        waiter_count_.store(waiters_.size(), std::memory_order_relaxed);
        if (waits_for_itself(waiter)) grow(&waiter);
    }
    end();
    block_or_withdraw(waiter.goes_on, [&] {
        const std::lock_guard guard(mutex_);
        if (std::erase(waiters_, &waiter) == 0) return false;
        waiter_count_.store(waiters_.size(), std::memory_order_relaxed);
        full.waiting.fetch_sub(1, std::memory_order_relaxed);
        begin();
        return true;
    });
    return !waiter.stopped;
}

void Pressure::emptied(Gauge& gauge) {
    if (gauge.waiting.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard guard(mutex_);
    release(gauge);
}

void Pressure::stop() {
    const std::lock_guard guard(mutex_);
    release_all();
}

void Pressure::release_all() {
    stopped_ = true;
    while (!waiters_.empty()) release(*waiters_.back()->full);
}

void Pressure::release(Gauge& gauge) {
    for (size_t i = 0; i < waiters_.size();) {
        Waiter* const waiter = waiters_[i];
        if (waiter->full != &gauge) {
            ++i;
            continue;
        }
        waiters_[i] = waiters_.back();
        waiters_.pop_back();
        waiter_count_.store(waiters_.size(), std::memory_order_relaxed);
        gauge.waiting.fetch_sub(1, std::memory_order_relaxed);
        begin();
        waiter->stopped = stopped_;
        waiter->goes_on.signal();
    }
}

}  // namespace heddle::streams
