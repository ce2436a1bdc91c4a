// OneAtATime: calls a function of the program's one at a time, for what any thread or task brings.
//
// Whoever finds somebody inside waits as before a full queue: a task is paused, so that the one inside, which
// may be paused itself, has a worker to go on with; and where he waits for a full queue of the network, into
// which the function pushes, all wait, and that queue grows. What comes by the function itself, as where it
// pushes into the network that it hears of, is its turn when it has returned.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <tuple>
#include <utility>

#include "streams/own_number.hpp"
#include "streams/pressure.hpp"

namespace heddle::streams {

template <class... What>
class OneAtATime {
  public:
    explicit OneAtATime(std::function<void(What...)> function) : function_(std::move(function)) {
        inside_.bound = Pressure::kNeverGrows;
    }
    /// `before_wait` is called before each wait, and then who calls has begun. False: the network was stopped
    /// while he waited, and the function is not called. Throws what the function throws, and kLimit where
    /// there is no memory to pause the task. Any thread.
    template <class BeforeWait>
    [[nodiscard]] bool call(Pressure& pressure, const BeforeWait& before_wait, What... what) {
        const uintptr_t own = own_number();
        if (inside_.outside.load(std::memory_order_relaxed) == own) {
            later_.emplace_back(std::move(what)...);
            return true;
        }
        while (!enter(own)) {
            before_wait();
            // seq_cst, as in Leaving: who leaves sees who waits, or who waits sees that he has left.
            if (!pressure.wait(inside_,
                               [this] { return inside_.outside.load(std::memory_order_seq_cst) != 0; }))
                return false;
        }
        const Leaving leaving(inside_, pressure);
        function_(std::move(what)...);
        while (!later_.empty()) {
            auto next = std::move(later_.front());
            later_.pop_front();
            std::apply(function_, std::move(next));
        }
        return true;
    }

  private:
    bool enter(uintptr_t own) {
        uintptr_t nobody = 0;
        return inside_.outside.compare_exchange_strong(nobody, own, std::memory_order_acquire,
                                                       std::memory_order_relaxed);
    }
    class Leaving {
      public:
        Leaving(Pressure::Gauge& inside, Pressure& pressure) : inside_(inside), pressure_(pressure) {}
        ~Leaving() {
            inside_.outside.store(0, std::memory_order_seq_cst);
            pressure_.emptied(inside_);
        }
        Leaving(const Leaving&) = delete;
        Leaving& operator=(const Leaving&) = delete;

      private:
        Pressure::Gauge& inside_;
        Pressure& pressure_;
    };

    const std::function<void(What...)> function_;
    /// Full while somebody is inside, who is the one that will empty it: `outside` is his number. He alone
    /// finds his own number there.
    Pressure::Gauge inside_;
    std::deque<std::tuple<What...>> later_;  ///< of who is inside
};

}  // namespace heddle::streams
