// TaskMemory: records of tasks, in size classes, each thread with a cache of its own.
//
// One for a runtime; its memory goes back to the system when it is destroyed, not before, so that a record
// stays a record (TaskRef). Threads free what others allocated: records travel in chains of kChain between
// the caches and the middle, so that the middle's lock is taken once for so many tasks.
#pragma once

#include <array>
#include <memory>
#include <vector>

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
    [[nodiscard]] Task& allocate(Cache& cache, size_t bytes);
    void free(Cache& cache, Task& task) noexcept;
    /// Takes a cache back whose thread is going.
    void empty(Cache& cache) noexcept;

    static constexpr size_t kLargest = size_t{1} << 24;

  private:
    using Chain = Cache::Chain;
    static constexpr uint32_t kChain = 32;
    static constexpr size_t kSlab = size_t{1} << 16;

    [[noreturn]] static void refuse(size_t bytes);
    // Not inlined, as what a thread has at hand needs no more than a few instructions.
    [[gnu::noinline]] void refill(Cache::Shelf& shelf, uint8_t size_class);
    static uint8_t class_of(size_t bytes);
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
