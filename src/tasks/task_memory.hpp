// TaskMemory: records of tasks, in size classes, each thread with a cache of its own.
//
// One for a runtime; its memory goes back to the system when it is destroyed, not before, so that a record
// stays a record (TaskRef). Threads free what others allocated: records travel in chains of kChain between
// the caches and the middle, so that the middle's lock is taken once for so many tasks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/prefetch.hpp"
#include "cores/short_lock.hpp"
#include "tasks/task.hpp"

namespace heddle {

class TaskMemory {
  public:
    /// A thread's own stock; only that thread uses it.
    class Cache {
      private:
        friend class TaskMemory;
        struct Chain {
            Task* first = nullptr;
            uint32_t length = 0;
        };
        struct Shelf {
            Chain open, full;
        };
        std::array<Shelf, 40> shelves_;
    };

    TaskMemory() = default;
    ~TaskMemory();
    TaskMemory(const TaskMemory&) = delete;
    TaskMemory& operator=(const TaskMemory&) = delete;

    /// A record whose header is as its last user left it, in its first use as constructed. Throws kLimit
    /// where memory is short or `bytes` is beyond kLargest.
    [[nodiscard]] Task& allocate(Cache& cache, size_t bytes) {
        Task* const task = at_hand(cache, bytes);
        return task != nullptr ? *task : fetch(cache, bytes);
    }
    /// The same where the thread has one in stock, else null.
    [[nodiscard]] static Task* at_hand(Cache& cache, size_t bytes) noexcept {
        if (bytes > kLargest) return nullptr;
        Cache::Chain& open = cache.shelves_[class_of(bytes)].open;
        Task* const task = open.first;
        if (task == nullptr) return nullptr;
        open.first = task->next;
        --open.length;
        // Whoever ran the next one wrote it last.
        if (const auto* next = reinterpret_cast<const std::byte*>(open.first); next != nullptr)
            for (size_t line = 0; line < std::min(bytes, kMostAhead); line += 64)
                prefetch_to_write(next + line);
        return task;
    }
    void free(Cache& cache, Task& task) noexcept {
        Cache::Shelf& shelf = cache.shelves_[task.size_class];
        if (shelf.open.length >= kChain) [[unlikely]]
            make_room(shelf, task.size_class);
        task.next = shelf.open.first;
        shelf.open.first = &task;
        ++shelf.open.length;
    }
    /// Takes a cache back whose thread is going.
    void empty(Cache& cache) noexcept;

    static constexpr size_t kLargest = size_t{1} << 24;

  private:
    using Chain = Cache::Chain;
    static constexpr uint32_t kChain = 32;
    static constexpr size_t kMostAhead = 512;  // bytes of the next record that are asked for
    static constexpr size_t kSlab = size_t{1} << 16;

    /// Records of 128 bytes, and two sizes for each doubling: 128, 192, 256, 384, 512, ...
    static constexpr size_t kSmallest = 128;

    [[noreturn]] static void refuse(size_t bytes);
    // Not inlined, so that what a thread has at hand takes but a few instructions.
    [[nodiscard, gnu::noinline]] Task& fetch(Cache& cache, size_t bytes);
    [[gnu::noinline]] void make_room(Cache::Shelf& shelf, uint8_t size_class) noexcept;
    static uint8_t class_of(size_t bytes) noexcept {
        if (bytes <= kSmallest) return 0;
        // 2^doubling < bytes <= 2^(doubling + 1)
        const size_t doubling = static_cast<size_t>(std::bit_width(bytes - 1)) - 1;
        const size_t half_way = size_t{3} << (doubling - 1);
        return static_cast<uint8_t>(2 * (doubling - 7) + (bytes <= half_way ? 1 : 2));
    }
    static size_t bytes_of(uint8_t size_class);
    Chain take(uint8_t size_class);
    void give(uint8_t size_class, Chain chain) noexcept;
    Chain carve(uint8_t size_class);

    struct Middle {
        ShortLock lock;
        Task* chains = nullptr;  // by next_chain; the first record of each has its length as priority
    };
    std::array<Middle, 40> middle_;
    ShortLock slabs_lock_;
    std::vector<std::byte*> slabs_;
};

}  // namespace heddle
