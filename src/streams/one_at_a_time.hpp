// OneAtATime: calls a function of the program's one at a time, for what any thread or task brings.
//
// What comes by the function itself, as where it pushes into the network that it hears of, is its turn when
// it has returned.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <tuple>
#include <utility>

#include "streams/own_number.hpp"

namespace heddle::streams {

template <class... What>
class OneAtATime {
  public:
    explicit OneAtATime(std::function<void(What...)> function) : function_(std::move(function)) {}

    /// Throws what the function throws. Any thread.
    void call(What... what) {
        const uintptr_t own = own_number();
        if (caller_.load(std::memory_order_relaxed) == own) {
            later_.emplace_back(std::move(what)...);
            return;
        }
        const std::lock_guard guard(mutex_);
        const Calling calling(caller_, own);
        function_(std::move(what)...);
        while (!later_.empty()) {
            auto next = std::move(later_.front());
            later_.pop_front();
            std::apply(function_, std::move(next));
        }
    }

  private:
    class Calling {
      public:
        Calling(std::atomic<uintptr_t>& caller, uintptr_t own) : caller_(caller) {
            caller_.store(own, std::memory_order_relaxed);
        }
        ~Calling() { caller_.store(0, std::memory_order_relaxed); }
        Calling(const Calling&) = delete;
        Calling& operator=(const Calling&) = delete;

      private:
        std::atomic<uintptr_t>& caller_;
    };

    const std::function<void(What...)> function_;
    std::mutex mutex_;
    std::atomic<uintptr_t> caller_{0};       ///< who is inside; it alone finds its own number here
    std::deque<std::tuple<What...>> later_;  ///< that one's
};

}  // namespace heddle::streams
