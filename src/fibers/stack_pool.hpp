// StackPool: the stacks of an engine's fibers, in large pieces from the kernel and used again and again.
//
// The engine owns one pool, and each of its workers a StackCache on it. A stack is taken and given back
// through a cache, of any worker; the cache itself is for one thread at a time, the pool's own functions for
// any. The pool outlives its caches and the use of its stacks, and returns address space to the kernel when
// it ends.
//
// Below each stack lies a guard page: an overflow is a SIGSEGV at an address in that page. It takes no
// mapping of its own (base/virtual_memory.hpp), so 100,000 stacks are as many lines in /proc/self/maps as
// ten. Where the kernel has no such guards, the lowest KiB of a stack holds a pattern that is looked at when
// the stack is given back: an overflow that is found there has damaged the stack below, so it ends the
// process, with a message that names the stack; this library does so nowhere else. A frame larger than a page
// can step over either unless it was compiled with -fstack-clash-protection.
//
// Memory: a stack in use has the pages that it touched. Of those that are idle, `idle_bytes` and what the
// caches keep stay as they are, for they are warm; the others' memory goes back to the kernel at once.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/virtual_memory.hpp"
#include "fibers/stack_span.hpp"

namespace heddle {

/// A stack of a pool. Whoever has taken it uses the span; the rest is the pool's.
class Stack {
  public:
    [[nodiscard]] StackSpan span() const noexcept { return span_; }

  private:
    friend class StackPool;
    friend class StackCache;
    friend class StackList;
    StackSpan span_;
    Stack* next_ = nullptr;
    enum class State : unsigned char { kFresh, kGuarded, kCanary } state_ = State::kFresh;
};

/// Stacks that are idle, the last one first. Not thread-safe.
class StackList {
  public:
    [[nodiscard]] size_t size() const noexcept { return size_; }
    [[nodiscard]] Stack* first() const noexcept { return first_; }
    void push(Stack& stack) noexcept;
    Stack* pop() noexcept;  // null where there is none
    /// Takes up to `count` from the other.
    void take(StackList& other, size_t count) noexcept;

  private:
    Stack* first_ = nullptr;
    size_t size_ = 0;
};

class StackPool {
  public:
    struct Options {
        size_t stack_bytes = size_t{64}
                             << 10;  ///< a power of two, 16 KiB to 1 GiB; up to 6 KiB are the pool's
        size_t idle_bytes = size_t{64} << 20;  ///< of stacks that keep their memory while idle, caches apart
        bool guard_pages = true;               ///< false: as on a kernel without

        /// The usual ones with stacks of so many bytes; 0: as many as are usual.
        [[nodiscard]] static Options of(size_t stack_bytes) {
            Options options;
            if (stack_bytes != 0) options.stack_bytes = stack_bytes;
            return options;
        }
    };
    struct Usage {
        size_t made = 0;  ///< stacks carved so far; they are never unmade
        size_t warm = 0;  ///< idle, with their memory; those in caches do not count here
        size_t cold = 0;  ///< idle, without memory
    };

    /// Throws kInvalidArgument for a size that cannot be. Takes nothing from the kernel yet. The memory must
    /// outlive the pool.
    explicit StackPool(Options options, VirtualMemory& memory = VirtualMemory::of_system());
    StackPool() : StackPool(Options()) {}
    ~StackPool();
    StackPool(const StackPool&) = delete;
    StackPool& operator=(const StackPool&) = delete;

    [[nodiscard]] size_t stack_bytes() const noexcept { return options_.stack_bytes; }
    [[nodiscard]] Usage usage() const;

  private:
    friend class StackCache;
    struct Slab {
        void* address = nullptr;
        size_t bytes = 0;
        std::unique_ptr<Stack[]> stacks;
        size_t count = 0;
    };

    void supply(StackList& list, size_t count);
    void accept(StackList& list) noexcept;
    void prepare(Stack& stack);
    void check(const Stack& stack) const noexcept;
    void add_slab();

    const Options options_;
    VirtualMemory& memory_;
    mutable std::mutex mutex_;  // held for lists and slabs, and for the reservation of a slab
    std::vector<Slab> slabs_;
    size_t carved_ = 0;  // of the last slab
    size_t made_ = 0;
    StackList warm_, cold_;
};

class StackCache {
  public:
    explicit StackCache(StackPool& pool) noexcept : pool_(pool) {}
    ~StackCache() { pool_.accept(idle_); }
    StackCache(const StackCache&) = delete;
    StackCache& operator=(const StackCache&) = delete;

    /// Throws kLimit where the kernel gives no more memory; nothing has changed then.
    [[nodiscard]] Stack& take();
    /// No fiber is on it any more. Ends the process where an overflow was found.
    void give_back(Stack& stack) noexcept;

  private:
    static constexpr size_t kMost = 64;   // kept here, before half of them go to the pool
    static constexpr size_t kBatch = 16;  // asked of the pool at once
    StackPool& pool_;
    StackList idle_;
};

}  // namespace heddle
