// Components of the ledger when allocations fail, from each one on: what a call cannot do it says, and once
// there is memory again each component hears of what comes, and can leave.
#include <gtest/gtest.h>

#include <new>

#include "cores/exchange.hpp"
#include "heddle/cores.hpp"
#include "heddle/error.hpp"
#include "support/scarce_memory.hpp"

namespace heddle::test {
namespace {

/// One that counts what it hears.
struct Listener {
    Listener(Exchange& exchange, const char* name, const CpuSet& owned) : component(exchange, name, owned) {
        (void)component.on_enable_cpu([this](int) { ++enabled; });
        (void)component.on_disable_cpu([this](int) { ++disabled; });
        (void)component.on_set_num_threads([this](int count) { threads = count; });
    }
    Component component;
    int enabled = 0, disabled = 0, threads = -1;
};

template <class Call>
void scarce(Call call) {
    memory.counts = true;
    try {
        call();
    } catch (const std::bad_alloc&) {
    } catch (const Error& error) {
        memory.counts = false;
        EXPECT_EQ(error.code(), ErrorCode::kLimit);
    }
    memory.counts = false;
}

TEST(ComponentsWithoutMemory, GoOnWhenThereIsSomeAgain) {
    bool enough = false;
    for (long nth = 0; !enough; ++nth) {
        SCOPED_TRACE("after allocation " + std::to_string(nth));
        Exchange exchange(Machine::synthetic("core:4 pu:1"));
        Listener owner(exchange, "owner", {0, 1, 2, 3});
        Listener taker(exchange, "taker", {});
        memory = {};
        memory.exhausted_after = nth;
        scarce([&] { (void)owner.component.lend_cpu(0); });
        scarce([&] { (void)taker.component.acquire_cpus(4); });
        scarce([&] { (void)owner.component.lend(); });
        scarce([&] { (void)owner.component.reclaim(); });
        enough = !memory.exhausted;
        memory = {};
        (void)taker.component.lend();
        (void)owner.component.reclaim();
        taker.enabled = 0;
        EXPECT_EQ(owner.component.lend(), Outcome::kSuccess);
        (void)taker.component.acquire_cpus(0);
        (void)taker.component.borrow();
        EXPECT_EQ(taker.component.usable().count(), 4);
        EXPECT_EQ(taker.enabled, 4) << "it hears nothing any more";
        EXPECT_EQ(taker.threads, 4);
        ASSERT_LT(nth, 10'000);
    }
}

}  // namespace
}  // namespace heddle::test
