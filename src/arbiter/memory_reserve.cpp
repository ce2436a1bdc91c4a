#include "arbiter/memory_reserve.hpp"

namespace heddle {
namespace {

std::atomic<MemoryReserve*> the_reserve;  // a new_handler has no arguments

}  // namespace

MemoryReserve::MemoryReserve(size_t bytes)
    : bytes_(bytes), block_(::operator new(bytes, std::nothrow)), before_(std::set_new_handler(spend)) {
    the_reserve = this;
}

MemoryReserve::~MemoryReserve() {
    std::set_new_handler(before_);
    the_reserve = nullptr;
    ::operator delete(block_.load());
}

bool MemoryReserve::refill() {
    if (!spent()) return true;
    block_ = ::operator new(bytes_, std::nothrow);
    return !spent();
}

void MemoryReserve::spend() {
    MemoryReserve* reserve = the_reserve;
    void* block = reserve == nullptr ? nullptr : reserve->block_.exchange(nullptr);
    if (block == nullptr) throw std::bad_alloc();
    ::operator delete(block);
}

}  // namespace heddle
