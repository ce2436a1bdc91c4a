// PollingServices: what idle workers of a runtime call in between.
//
// Any thread. One thread at a time calls them; to that one a service may come to be unregistered, which waits
// for the call that is under way.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "heddle/pause.hpp"

namespace heddle {

/// How long an idle worker does nothing between two calls of services: longer each time none of them is done.
class PollingPause {
  public:
    void restart() { next_ = kShortest; }
    [[nodiscard]] bool longest() const { return next_ == kLongest; }
    Nanoseconds take() { return std::exchange(next_, std::min(2 * next_, kLongest)); }

  private:
    static constexpr Nanoseconds kShortest = std::chrono::microseconds(5),
                                 kLongest = std::chrono::microseconds(200);
    Nanoseconds next_ = kShortest;
};

class PollingServices {
  public:
    void add(const std::string& name, PollingService service, void* data);
    void remove(PollingService service, void* data);
    [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
    /// The calling thread is in a service, of any runtime.
    [[nodiscard]] static bool in_service() noexcept;
    /// Calls each once; nothing where another thread is at it. True: one of them was done.
    bool poll() noexcept;

  private:
    struct Entry {
        std::string name;
        PollingService service;
        void* data;
        bool again;  // was registered once more while it was called: stays, even if that call was the last
        bool operator==(const Entry& other) const { return service == other.service && data == other.data; }
    };

    std::mutex mutex_;  // for all below, and not held in a service
    std::vector<Entry> entries_;
    Entry under_way_{};
    bool polling_ = false;
    std::condition_variable called_;
    std::atomic<size_t> count_{0};  // of entries_; read without the mutex, as a hint
};

}  // namespace heddle
