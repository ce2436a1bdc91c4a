// WorkRing: pieces of work that one thread notes and another takes, without locks and within fixed memory.
//
// One thread pushes, one at a time pops. `head_` is written by who pushes, `tail_` by who pops: the release
// of each and the acquire of the other order the entries between them. A ring that is full drops what comes,
// and counts it. Nothing of it survives a crash: what was popped does.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trace/trace.hpp"

namespace heddle::trace {

struct NotedWork {
    const char* name = nullptr;  ///< must live until it was popped
    int64_t begin_ns = 0;        ///< CLOCK_MONOTONIC
    int64_t end_ns = 0;
    int64_t task = 0;
    int cpu = -1;
    SpanKind kind = SpanKind::kWork;
    /// As `name`. Null: that of whoever notes.
    const char* row = nullptr;
};

template <size_t Size>
class WorkRing {
  public:
    static_assert((Size & (Size - 1)) == 0, "places are found by a mask");

    /// The one thread that notes.
    void push(const NotedWork& work) noexcept {
        const uint64_t head = head_.load(std::memory_order_relaxed);
        if (head - tail_.load(std::memory_order_acquire) == Size) {
            dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            return;
        }
        entries_[head & (Size - 1)] = work;
        head_.store(head + 1, std::memory_order_release);
    }
    /// The one that takes. False: it is empty.
    [[nodiscard]] bool pop(NotedWork& work) noexcept {
        const uint64_t tail = tail_.load(std::memory_order_relaxed);
        if (tail == head_.load(std::memory_order_acquire)) return false;
        work = entries_[tail & (Size - 1)];
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }
    /// So far, by who asks first for each. Of the one that takes.
    [[nodiscard]] uint64_t take_dropped() noexcept {
        const uint64_t now = dropped_.load(std::memory_order_relaxed);
        const uint64_t since = now - told_;
        told_ = now;
        return since;
    }

  private:
    alignas(64) std::atomic<uint64_t> head_{0};
    std::atomic<uint64_t> dropped_{0};  // by who pushes
    alignas(64) std::atomic<uint64_t> tail_{0};
    uint64_t told_ = 0;
    std::array<NotedWork, Size> entries_;
};

}  // namespace heddle::trace
