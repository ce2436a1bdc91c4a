// A failure that was told: tasks inserted afterwards run, those inserted before that would read what was not
// written do not.
#include <gtest/gtest.h>

#include <stdexcept>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "support/engines.hpp"

namespace heddle {
namespace {

class ToldFailuresTest : public test::ARuntimeOnEachEngine {
  protected:
    static void throws(int&) { throw std::runtime_error("not written"); }
};
INSTANTIATE_TEST_SUITE_P(Engines, ToldFailuresTest, test::engines(), test::engine_name);

TEST_P(ToldFailuresTest, TasksInsertedBeforeAreCancelledStill) {
    for (const bool waits : {true, false}) {
        Scalar<int> x(runtime_, 0), z(runtime_, 0);
        Sequence readers(runtime_);
        BlockCondition gate;
        bool has_read = false;
        {
            Sequence writers(runtime_);
            writers.insert(throws, out(x));
            readers.insert([&](int&) { gate.block(); }, out(z));
            readers.insert([&](const int&, const int&) { has_read = true; }, in(x), in(z));
            if (waits) {
                EXPECT_THROW(writers.wait(), std::runtime_error);
            }
        }
        gate.signal();
        EXPECT_THROW(readers.wait(), std::runtime_error) << "the wait of the other sequence has told it";
        EXPECT_FALSE(has_read);
        // Now it is told to both.
        readers.insert([&](const int&) { has_read = true; }, in(x));
        readers.wait();
        EXPECT_TRUE(has_read);
    }
}

TEST_P(ToldFailuresTest, TasksInsertedAfterwardsRunThoughOthersAreLeft) {
    Scalar<int> x(runtime_, 0), z(runtime_, 0);
    Sequence writers(runtime_), others(runtime_);
    BlockCondition gate;
    others.insert([&](int&) { gate.block(); }, out(z));
    writers.insert(throws, out(x));
    EXPECT_THROW(writers.wait(), std::runtime_error);
    for (int i = 0; i < 10; ++i) writers.insert([](int& value) { ++value; }, inout(x));
    writers.wait();
    EXPECT_EQ(x.get(), 10);
    gate.signal();
    others.wait();
}

/// What it was to write is not good again when the other sequence has been told.
TEST_P(ToldFailuresTest, OfASequenceWithAFailureOfItsOwnAreNotOthersToTell) {
    Scalar<int> x(runtime_, 0), y(runtime_, 0), z(runtime_, 0);
    Sequence first(runtime_), second(runtime_), third(runtime_);
    first.insert(throws, out(x));
    second.insert(throws, out(z));
    second.insert([](const int&, int&) {}, in(x), out(y));
    EXPECT_THROW(first.wait(), std::runtime_error);
    bool has_read = false;
    third.insert([&](const int&) { has_read = true; }, in(y));
    EXPECT_THROW(third.wait(), std::runtime_error);
    EXPECT_FALSE(has_read);
    EXPECT_THROW(second.wait(), std::runtime_error);
}

}  // namespace
}  // namespace heddle
