#include "engines/native/priority_queue.hpp"

#include <gtest/gtest.h>

#include <array>

namespace heddle {
namespace {

class PriorityQueueTest : public testing::Test {
  protected:
    /// A task of that priority, in the queue.
    Task* push(int32_t priority) {
        Task& task = tasks_.at(used_++);
        task.priority = priority;
        queue_.push(task);
        return &task;
    }

    std::array<Task, 8> tasks_;
    size_t used_ = 0;
    FakeClock clock_;
    PriorityQueue queue_{clock_};
};

TEST_F(PriorityQueueTest, TheHighestComesFirstAndOfThoseTheOldest) {
    Task* const low = push(-1);
    Task* const first = push(3);
    Task* const second = push(3);
    Task* const last = push(kWhenNothingElseCan);
    EXPECT_EQ(queue_.pop(false), first);
    EXPECT_EQ(queue_.pop(false), second);
    EXPECT_EQ(queue_.pop(false), nullptr);
    EXPECT_EQ(queue_.pop(true), low);
    EXPECT_EQ(queue_.pop(true), last);
    EXPECT_EQ(queue_.pop(true), nullptr);
    EXPECT_TRUE(queue_.empty());
}

TEST_F(PriorityQueueTest, OfThoseThatComeLastTheOldestComesAfterAWhile) {
    Task* const first = push(kWhenNothingElseCan);
    clock_.advance(PriorityQueue::kPatience - Nanoseconds(1));
    Task* const second = push(kWhenNothingElseCan);
    Task* const third = push(kWhenNothingElseCan);
    EXPECT_EQ(queue_.pop(false), nullptr);
    EXPECT_FALSE(queue_.has_for_now());
    clock_.advance(Nanoseconds(1));
    EXPECT_TRUE(queue_.has_for_now());
    EXPECT_EQ(queue_.pop(false), first);
    EXPECT_EQ(queue_.pop(false), nullptr);
    clock_.advance(PriorityQueue::kPatience);
    EXPECT_EQ(queue_.pop(false), second);
    clock_.advance(PriorityQueue::kPatience / 2);
    EXPECT_EQ(queue_.pop(true), third);
    EXPECT_EQ(queue_.pop(true), nullptr);
}

TEST_F(PriorityQueueTest, AfterThatWhileItComesBeforeAnyOther) {
    Task* const last = push(kWhenNothingElseCan);
    for (int i = 0; i < 3; ++i) {
        Task* const urgent = push(1);
        clock_.advance(PriorityQueue::kPatience / 4);
        EXPECT_EQ(queue_.pop(false), urgent);
    }
    Task* const urgent = push(1);
    clock_.advance(PriorityQueue::kPatience / 4);
    EXPECT_EQ(queue_.pop(false), last);
    EXPECT_EQ(queue_.pop(false), urgent);
}

TEST_F(PriorityQueueTest, OthersBelowZeroWaitForEverAndHoldNoneUp) {
    Task* const low = push(kWhenNothingElseCan + 1);
    Task* const last = push(kWhenNothingElseCan);
    clock_.advance(PriorityQueue::kPatience);
    EXPECT_EQ(queue_.pop(false), last);
    clock_.advance(100 * PriorityQueue::kPatience);
    EXPECT_EQ(queue_.pop(false), nullptr);
    EXPECT_EQ(queue_.pop(true), low);
}

}  // namespace
}  // namespace heddle
