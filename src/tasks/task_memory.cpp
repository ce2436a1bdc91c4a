#include "tasks/task_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

size_t TaskMemory::bytes_of(uint8_t size_class) {
    const size_t doubled = kSmallest << (size_class / 2);
    return size_class % 2 == 0 ? doubled : doubled + doubled / 2;
}

void TaskMemory::refuse(size_t bytes) {
    throw Error(ErrorCode::kLimit,
                fmt::format("a task's function, values and data take {} bytes, and {} is the most: pass "
                            "large values by pointer, or as data",
                            bytes, kLargest));
}

TaskMemory::~TaskMemory() {
    for (std::byte* slab : slabs_) ::operator delete(slab, kAlignment);
}

Task& TaskMemory::fetch(Cache& cache, size_t bytes) {
    if (bytes > kLargest) refuse(bytes);
    const uint8_t size_class = class_of(bytes);
    auto& shelf = cache.shelves_[size_class];
    std::swap(shelf.open, shelf.full);
    if (shelf.open.first == nullptr) shelf.open = take(size_class);
    return *at_hand(cache, bytes);
}

void TaskMemory::make_room(Cache::Shelf& shelf, uint8_t size_class) noexcept {
    if (shelf.full.first != nullptr) give(size_class, shelf.full);
    shelf.full = std::exchange(shelf.open, {});
}

void TaskMemory::empty(Cache& cache) noexcept {
    for (uint8_t size_class = 0; size_class < cache.shelves_.size(); ++size_class) {
        auto& shelf = cache.shelves_[size_class];
        for (Chain* chain : {&shelf.open, &shelf.full})
            if (chain->first != nullptr) give(size_class, std::exchange(*chain, {}));
    }
}

TaskMemory::Chain TaskMemory::take(uint8_t size_class) {
    Middle& middle = middle_[size_class];
    {
        const std::lock_guard guard(middle.lock);
        if (Task* first = middle.chains; first != nullptr) {
            middle.chains = first->next_chain;
            return {first, static_cast<uint32_t>(first->priority)};
        }
    }
    return carve(size_class);
}

void TaskMemory::give(uint8_t size_class, Chain chain) noexcept {
    Middle& middle = middle_[size_class];
    chain.first->priority = static_cast<int32_t>(chain.length);
    const std::lock_guard guard(middle.lock);
    chain.first->next_chain = middle.chains;
    middle.chains = chain.first;
}

TaskMemory::Chain TaskMemory::carve(uint8_t size_class) {
    const size_t bytes = bytes_of(size_class);
    const size_t count = std::max<size_t>(1, kSlab / bytes);
    std::byte* slab = nullptr;
    try {
        slab = static_cast<std::byte*>(::operator new(count* bytes, kAlignment));
        const std::lock_guard guard(slabs_lock_);
        slabs_.push_back(slab);
    } catch (const std::bad_alloc&) {
        ::operator delete(slab, kAlignment);
        throw Error(
            ErrorCode::kLimit,
            fmt::format("there is no memory for more tasks ({} bytes): wait for some of those inserted",
                        count * bytes));
    }
    // All but the first chain go to the middle, in chains of the usual length.
    Chain chain, first;
    for (size_t i = count; i-- > 0;) {
        Task* task = new (slab + i * bytes) Task;
        task->size_class = size_class;
        task->next = std::exchange(chain.first, task);
        if (++chain.length < kChain && i > 0) continue;
        if (i == 0)
            first = chain;
        else
            give(size_class, chain);
        chain = {};
    }
    return first;
}

}  // namespace heddle
