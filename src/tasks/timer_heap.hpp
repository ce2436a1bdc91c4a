// TimerHeap: what is to happen at a time, the earliest first.
//
// Not thread-safe. Holds pointers to what others own; each knows its place, so that it can be taken out
// early. Only reserve() allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/clock.hpp"

namespace heddle {

struct Timer {
    static constexpr size_t kNowhere = ~size_t{0};
    Time time = Time::max();
    size_t place = kNowhere;  ///< in the heap
};

class TimerHeap {
  public:
    /// Room for so many at once. Throws std::bad_alloc.
    void reserve(size_t count) {
        if (count > heap_.capacity()) heap_.reserve(std::max(count, 2 * heap_.capacity()));
    }
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    [[nodiscard]] Time earliest() const noexcept { return heap_.empty() ? Time::max() : heap_.front()->time; }

    void add(Timer& timer) noexcept {
        heap_.push_back(&timer);
        rise(heap_.size() - 1, timer);
    }
    /// Nothing where it is not in here.
    void remove(Timer& timer) noexcept {
        const size_t hole = timer.place;
        if (hole == Timer::kNowhere) return;
        timer.place = Timer::kNowhere;
        Timer& last = *heap_.back();
        heap_.pop_back();
        if (&last == &timer) return;
        sink(hole, last);
        rise(last.place, last);
    }
    /// Takes out one whose time has come, or returns null.
    [[nodiscard]] Timer* pop(Time now) noexcept {
        if (heap_.empty() || heap_.front()->time > now) return nullptr;
        Timer* const timer = heap_.front();
        remove(*timer);
        return timer;
    }

  private:
    void put(size_t place, Timer& timer) noexcept {
        heap_[place] = &timer;
        timer.place = place;
    }
    void rise(size_t place, Timer& timer) noexcept {
        while (place > 0 && timer.time < heap_[(place - 1) / 2]->time) {
            put(place, *heap_[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        put(place, timer);
    }
    void sink(size_t place, Timer& timer) noexcept {
        for (size_t child; (child = 2 * place + 1) < heap_.size(); place = child) {
            if (child + 1 < heap_.size() && heap_[child + 1]->time < heap_[child]->time) ++child;
            if (heap_[child]->time >= timer.time) break;
            put(place, *heap_[child]);
        }
        put(place, timer);
    }

    std::vector<Timer*> heap_;
};

}  // namespace heddle
