#include "tasks/producer_rest.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace heddle {
namespace {

/// Tasks that end one after the other, at a pace of so much each.
class Ending {
  public:
    explicit Ending(Nanoseconds each) : each_(each) {}
    uint64_t operator()() const {
        ++looks;
        return static_cast<uint64_t>((SteadyClock().now() - begin_) / each_);
    }

    mutable int looks = 0;

  private:
    const Nanoseconds each_;
    const Time begin_ = SteadyClock().now();
};

TEST(ProducerRest, WakesSeldomWhileTasksAreCoarse) {
    EventCount news;
    const Ending ended(std::chrono::microseconds(100));
    EXPECT_TRUE(rest_while(news, 200, std::ref(ended)));
    const int looks = ended.looks;
    EXPECT_GE(ended(), 200u);
    EXPECT_LE(looks, 60) << "once in 50 us would be 400 times";
}

TEST(ProducerRest, GoesOnSoonWhereTasksAreFine) {
    EventCount news;
    const Ending ended(Nanoseconds(100));
    EXPECT_TRUE(rest_while(news, 1'000'000'000, std::ref(ended)));
    EXPECT_LE(ended.looks, 3);
}

TEST(ProducerRest, GoesOnWhereNothingEnds) {
    EventCount news;
    EXPECT_FALSE(rest_while(news, 1, [] { return uint64_t{7}; }));
}

TEST(ProducerRest, GoesOnWhereNothingEndsAnyMore) {
    EventCount news;
    uint64_t looks = 0;
    EXPECT_TRUE(rest_while(news, 1'000, [&] { return ++looks == 1 ? uint64_t{0} : uint64_t{1}; }));
    EXPECT_LE(looks, 3u);
}

}  // namespace
}  // namespace heddle
