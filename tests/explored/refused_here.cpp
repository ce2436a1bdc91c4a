// In the place of BlockCondition::block() for who calls it from another file (CMakeLists.txt).
#include "refused_here.hpp"

#include <atomic>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "support/explorer.hpp"

namespace heddle::test {
namespace {

std::atomic<int> refused{-1};  // the explorer's number of a thread

}  // namespace

RefusedWaits::RefusedWaits() {
    refused.store(Explorer::current()->self(), std::memory_order_relaxed);
}

RefusedWaits::~RefusedWaits() {
    refused.store(-1, std::memory_order_relaxed);
}

extern "C" void __real__ZN6heddle14BlockCondition5blockEv(BlockCondition* condition);
extern "C" void __wrap__ZN6heddle14BlockCondition5blockEv(BlockCondition* condition);
extern "C" void __wrap__ZN6heddle14BlockCondition5blockEv(BlockCondition* condition) {
    const Explorer* const explorer = Explorer::current();
    if (explorer != nullptr && explorer->self() == refused.load(std::memory_order_relaxed) &&
        condition->state_.load(std::memory_order_acquire) == nullptr)
        throw Error(ErrorCode::kLimit, "there is no memory for one more stack");
    __real__ZN6heddle14BlockCondition5blockEv(condition);
}

}  // namespace heddle::test
