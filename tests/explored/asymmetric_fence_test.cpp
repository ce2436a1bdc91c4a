// light_fence() and heavy_fence() under the explorer: of two threads that each write and then look, one sees
// the other.
#include "base/asymmetric_fence.hpp"

#include "support/exploring.hpp"

namespace heddle::test {
namespace {

struct Words {
    std::atomic<int> one{0}, other{0};
    int seen_one = 1, seen_other = 1;
};

template <void (*kFence)() noexcept, void (*kOtherFence)() noexcept>
void write_then_look(Explorer& explorer) {
    auto words = std::make_shared<Words>();
    explorer.thread([words] {
        words->one.store(1, std::memory_order_relaxed);
        kFence();
        words->seen_other = words->other.load(std::memory_order_relaxed);
    });
    explorer.thread([words] {
        words->other.store(1, std::memory_order_relaxed);
        kOtherFence();
        words->seen_one = words->one.load(std::memory_order_relaxed);
    });
    explorer.finally([words, &explorer] {
        if (words->seen_one == 0 && words->seen_other == 0) explorer.fail("neither saw the other");
    });
}

class ExploredFence : public testing::TestWithParam<bool> {
  protected:
    ExploredFence() { light_fences_are_free = GetParam(); }
    ~ExploredFence() override { light_fences_are_free = here_; }

  private:
    const bool here_ = light_fences_are_free;
};
INSTANTIATE_TEST_SUITE_P(Light, ExploredFence, testing::Bool(),
                         [](const auto& free) { return free.param ? "free" : "full"; });

TEST_P(ExploredFence, OrdersAgainstAHeavyOne) {
    expect_holds(write_then_look<light_fence, heavy_fence>);
    expect_holds(write_then_look<heavy_fence, heavy_fence>);
    expect_found(write_then_look<light_fence, heavy_fence>, Fault::kNoFences);
    // Full fences on both sides; where the light one is free, the other has to reach its thread.
    if (GetParam())
        expect_found(write_then_look<light_fence, full_fence>, Fault::kNone);
    else
        expect_found(write_then_look<light_fence, heavy_fence>, Fault::kNotSequential);
}

TEST_P(ExploredFence, OrdersNothingAgainstALightOneWhereItIsFree) {
    if (GetParam())
        expect_found(write_then_look<light_fence, light_fence>, Fault::kNone);
    else
        expect_holds(write_then_look<light_fence, light_fence>);
}

}  // namespace
}  // namespace heddle::test
