#include "fibers/stack_pool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/sanitizers.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr size_t kLeastStack = size_t{16} << 10;
constexpr size_t kMostStack = size_t{1} << 30;
// Slabs double from the one to the other, so that a small program reserves little and a large one has few.
constexpr size_t kFirstSlab = size_t{1} << 20;
constexpr size_t kLastSlab = size_t{64} << 20;
// Tops of neighbours are so far apart, that many, beyond the size: else those of all would lie in the same
// few lines of a cache, and going round 1,000 fibers would take twice as long.
constexpr size_t kShift = 256;
constexpr size_t kShifts = 8;

using Canary = std::array<uint64_t, 128>;  // one that most frames do not step over

/// Another one for each stack, so that a copy of a neighbour's does not pass.
Canary canary_of(const void* bottom) {
    Canary words;
    words.fill(0x68656464'6c650a0dU ^ reinterpret_cast<uintptr_t>(bottom));
    return words;
}

std::byte* at(void* address, size_t offset) {
    return static_cast<std::byte*>(address) + offset;
}

/// Memory that is nobody's was written to: there is no going on, and no unwinding that could be trusted.
[[noreturn]] void end_after_overflow(StackSpan span, size_t bytes) {
    std::array<char, 320> text;
    const auto end = fmt::format_to_n(
        text.data(), text.size(),
        "heddle: a fiber overflowed its stack, {} to {} ({} KiB), and damaged what lies below. "
        "Give tasks larger stacks, or keep large variables off them.\n",
        span.bottom, span.top, bytes >> 10);
    (void)!::write(STDERR_FILENO, text.data(), std::min(end.size, text.size()));
    std::abort();
}

Error no_memory(size_t stack_bytes, size_t made, const char* what, int failure) {
    return {
        ErrorCode::kLimit,
        fmt::format(
            "no memory for one more stack of {} KiB beside {} others: {}: {}. Let fewer tasks be paused at "
            "once, give them smaller stacks, or raise the limit of address space (ulimit -v, the "
            "cgroup's memory.max, vm.overcommit_memory).",
            stack_bytes >> 10, made, what, std::strerror(failure))};
}

}  // namespace

void StackList::push(Stack& stack) noexcept {
    stack.next_ = first_;
    first_ = &stack;
    ++size_;
}

Stack* StackList::pop() noexcept {
    Stack* const stack = first_;
    if (stack == nullptr) return nullptr;
    first_ = stack->next_;
    --size_;
    return stack;
}

void StackList::take(StackList& other, size_t count) noexcept {
    for (; count > 0 && other.first_ != nullptr; --count) push(*other.pop());
}

StackPool::StackPool(Options options, VirtualMemory& memory) : options_(options), memory_(memory) {
    const size_t bytes = options.stack_bytes;
    if (!std::has_single_bit(bytes) || bytes < kLeastStack || bytes < 4 * VirtualMemory::page_bytes() ||
        bytes > kMostStack)
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("a stack cannot have {} bytes: it must be a power of two from {} KiB to 1 GiB", bytes,
                        std::max(kLeastStack, 4 * VirtualMemory::page_bytes()) >> 10));
}

StackPool::~StackPool() {
    for (const Slab& slab : slabs_) {
        forget_frames(slab.address, slab.bytes);
        memory_.release(slab.address, slab.bytes);
    }
}

StackPool::Usage StackPool::usage() const {
    const std::lock_guard lock(mutex_);
    return {made_, warm_.size(), cold_.size()};
}

/// Moves one to `count` idle stacks to the list, the warm ones first.
void StackPool::supply(StackList& list, size_t count) {
    const std::lock_guard lock(mutex_);
    list.take(warm_, count);
    if (list.size() == 0) list.take(cold_, count);
    if (list.size() > 0) return;
    if (slabs_.empty() || carved_ == slabs_.back().count) add_slab();
    Slab& slab = slabs_.back();
    for (; count > 0 && carved_ < slab.count; --count, ++carved_, ++made_) {
        Stack& stack = slab.stacks[carved_];
        stack.span_.bottom = at(slab.address, carved_ * options_.stack_bytes);
        stack.span_.top = at(stack.span_.bottom, options_.stack_bytes - carved_ % kShifts * kShift);
        list.push(stack);
    }
}

/// Adds an empty slab to carve from: twice the last one, or less where the kernel gives only less.
void StackPool::add_slab() {
    const size_t last = slabs_.empty() ? kFirstSlab / 2 : slabs_.back().bytes;
    size_t bytes = std::max(std::min(last * 2, kLastSlab), options_.stack_bytes);
    try {
        slabs_.reserve(slabs_.size() + 1);
        for (;; bytes = std::max(bytes / 2, options_.stack_bytes)) {
            Slab slab{nullptr, bytes, std::make_unique<Stack[]>(bytes / options_.stack_bytes),
                      bytes / options_.stack_bytes};
            const int failure = memory_.reserve(bytes, &slab.address);
            if (failure == 0) {
                slabs_.push_back(std::move(slab));
                carved_ = 0;
                return;
            }
            if (bytes == options_.stack_bytes) throw no_memory(options_.stack_bytes, made_, "mmap", -failure);
        }
    } catch (const std::bad_alloc&) {
        throw no_memory(options_.stack_bytes, made_, "operator new", ENOMEM);
    }
}

/// Takes stacks that a cache has too many of, and their memory where enough others keep theirs.
void StackPool::accept(StackList& list) noexcept {
    if (list.size() == 0) return;
    {
        const std::lock_guard lock(mutex_);
        if ((warm_.size() + list.size()) * options_.stack_bytes <= options_.idle_bytes) {
            warm_.take(list, list.size());
            return;
        }
    }
    const size_t lowest = VirtualMemory::page_bytes();  // the guard, or the canary, which stays
    for (const Stack* stack = list.first(); stack != nullptr; stack = stack->next_)
        (void)memory_.discard(at(stack->span_.bottom, lowest), options_.stack_bytes - lowest);
    const std::lock_guard lock(mutex_);
    cold_.take(list, list.size());
}

/// Secures the lower end of a stack before its first use.
void StackPool::prepare(Stack& stack) {
    const int failure =
        options_.guard_pages ? memory_.guard(stack.span_.bottom, VirtualMemory::page_bytes()) : -EINVAL;
    if (failure == 0) {
        stack.state_ = Stack::State::kGuarded;
    } else if (failure == -EINVAL) {
        const Canary words = canary_of(stack.span_.bottom);
        std::memcpy(stack.span_.bottom, &words, sizeof words);
        stack.state_ = Stack::State::kCanary;
    } else {
        throw no_memory(options_.stack_bytes, usage().made, "a guard page", -failure);
    }
}

void StackPool::check(const Stack& stack) const noexcept {
    const Canary words = canary_of(stack.span_.bottom);
    if (std::memcmp(stack.span_.bottom, &words, sizeof words) != 0)
        end_after_overflow(stack.span_, options_.stack_bytes);
}

Stack& StackCache::take() {
    if (idle_.size() == 0) pool_.supply(idle_, kBatch);
    Stack& stack = *idle_.first();
    if (stack.state_ == Stack::State::kFresh) pool_.prepare(stack);
    idle_.pop();
    return stack;
}

void StackCache::give_back(Stack& stack) noexcept {
    if (stack.state_ == Stack::State::kCanary) pool_.check(stack);
    forget_frames(stack.span_.bottom, pool_.stack_bytes());
    idle_.push(stack);
    if (idle_.size() <= kMost) return;
    StackList surplus;
    surplus.take(idle_, kMost / 2);
    pool_.accept(surplus);
}

}  // namespace heddle
