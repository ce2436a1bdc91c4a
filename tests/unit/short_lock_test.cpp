// Of locks for short sections: nobody waits for good.
#include "cores/short_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "support/kernels.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

/// A thread that takes it again and again leaves it to one that comes now and then. Without that the other
/// finds it free once in thousands of times.
TEST(ShortLock, WhoHasSleptForItHasItNext) {
    constexpr int kOther = 30, kMostEach = 2'000;
    ShortLock lock;
    std::atomic<bool> stop{false};
    std::atomic<int> taken{0};
    std::thread again_and_again([&] {
        while (!stop) {
            const std::lock_guard guard(lock);
            ++taken;
            test::spend(std::chrono::microseconds(20));
        }
    });
    EXPECT_TRUE(test::becomes_true([&] { return taken > 0; }, std::chrono::seconds(20)));
    const int before = taken;
    for (int i = 0; i < kOther; ++i) {
        const std::lock_guard guard(lock);
    }
    EXPECT_LT(taken - before, kOther * kMostEach);
    stop = true;
    again_and_again.join();
}

}  // namespace
}  // namespace heddle
