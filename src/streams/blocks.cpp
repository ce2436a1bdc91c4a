// The memory of records and values: blocks that one thread takes and another gives back, all the time.
//
// A thread keeps some of each size, and passes whole chains of them to the others, so that a record costs no
// lock and no walk through malloc's arenas. What is kept is bounded; the rest is given back to malloc.
#include <pthread.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/sanitizers.hpp"
#include "heddle/streams_record.hpp"

namespace heddle::snet::detail {
namespace {

#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
constexpr bool kKeeps = false;  // each block is to be seen as one
#else
constexpr bool kKeeps = true;
#endif
constexpr size_t kStep = 16, kClasses = 12;  ///< sizes up to kStep * kClasses
constexpr size_t kChain = 64;                ///< blocks that go from thread to thread at once
constexpr size_t kMostChains = 64;           ///< of one size, that lie between threads

struct Block {
    Block* next;
};

/// Chains of one size that no thread has.
class Shelf {
  public:
    Block* take() {
        const std::lock_guard guard(mutex_);
        if (chains_.empty()) return nullptr;
        Block* const chain = chains_.back();
        chains_.pop_back();
        return chain;
    }
    /// False: it is full.
    bool put(Block* chain) {
        const std::lock_guard guard(mutex_);
        if (chains_.size() == kMostChains) return false;
        chains_.push_back(chain);
        return true;
    }

  private:
    std::mutex mutex_;
    std::vector<Block*> chains_;
};

Shelf& shelf(size_t which) {
    static auto* const all = new std::array<Shelf, kClasses>;  // threads may end after it would be gone
    return (*all)[which];
}

void free_all(Block* chain) {
    while (chain != nullptr) {
        Block* const next = chain->next;
        std::free(chain);
        chain = next;
    }
}

/// Of one size, in one thread: `open` grows and shrinks, `full` is a chain of kChain, or none.
struct Stock {
    Block* open = nullptr;
    size_t count = 0;
    Block* full = nullptr;
};

struct Stocks {
    std::array<Stock, kClasses> of{};
    Stocks() = default;
    Stocks(const Stocks&) = delete;
    Stocks& operator=(const Stocks&) = delete;
    ~Stocks() {
        for (const Stock& stock : of) {
            free_all(stock.open);
            free_all(stock.full);
        }
    }
};

/// No object with a destructor: the thread's others may give blocks back when it would be gone.
thread_local struct {
    Stocks* stocks = nullptr;  // null: none yet, or never
    bool has_none = !kKeeps;   // it ends, or there was no memory
} of_thread [[gnu::tls_model("initial-exec")]];

/// False: nobody would hear of the end of this thread.
bool note_end_of_thread(Stocks* stocks) {
    static pthread_key_t key{};
    static const bool has_key = ::pthread_key_create(&key, [](void* ended) {
                                    of_thread = {nullptr, true};
                                    delete static_cast<Stocks*>(ended);
                                }) == 0;
    return has_key && ::pthread_setspecific(key, stocks) == 0;
}

[[gnu::noinline]] Stocks* make_stocks() noexcept {
    if (of_thread.has_none) return nullptr;
    std::unique_ptr<Stocks> made(new (std::nothrow) Stocks);
    if (made == nullptr || !note_end_of_thread(made.get())) {
        of_thread.has_none = true;
        return nullptr;
    }
    return of_thread.stocks = made.release();
}

/// Null: malloc is all there is.
Stocks* stocks_of_thread() noexcept {
    return of_thread.stocks != nullptr ? of_thread.stocks : make_stocks();
}

}  // namespace

void* allocate_block(size_t size) {
    const size_t which = size == 0 ? 0 : (size - 1) / kStep;
    if (kKeeps && which < kClasses) size = (which + 1) * kStep;  // whoever gives it back
    Stocks* const stocks = which < kClasses ? stocks_of_thread() : nullptr;
    if (stocks != nullptr) {
        Stock& stock = stocks->of[which];
        if (stock.open == nullptr) {
            stock.open = stock.full != nullptr ? std::exchange(stock.full, nullptr) : shelf(which).take();
            stock.count = stock.open == nullptr ? 0 : kChain;
        }
        if (stock.open != nullptr) {
            Block* const block = stock.open;
            stock.open = block->next;
            --stock.count;
            return block;
        }
    }
    void* const made = std::malloc(size);
    if (made == nullptr) throw std::bad_alloc();
    return made;
}

void free_block(void* memory, size_t size) noexcept {
    const size_t which = size == 0 ? 0 : (size - 1) / kStep;
    Stocks* const stocks = which < kClasses ? stocks_of_thread() : nullptr;
    if (stocks == nullptr) {
        std::free(memory);
        return;
    }
    Stock& stock = stocks->of[which];
    if (stock.count == kChain) {
        if (Block* const before = std::exchange(stock.full, stock.open))
            if (!shelf(which).put(before)) free_all(before);
        stock.open = nullptr;
        stock.count = 0;
    }
    stock.open = new (memory) Block{stock.open};
    ++stock.count;
}

}  // namespace heddle::snet::detail
