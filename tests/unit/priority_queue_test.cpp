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

TEST_F(PriorityQueueTest, OfThoseThatComeLastOneComesAfterAWhile) {
    Task* const first = push(kWhenNothingElseCan);
    clock_.advance(PriorityQueue::kPatience - Nanoseconds(1));
    Task* const second = push(kWhenNothingElseCan);
    EXPECT_EQ(queue_.pop(false), nullptr);
    clock_.advance(Nanoseconds(1));
    EXPECT_EQ(queue_.pop(false), first);
    clock_.advance(PriorityQueue::kPatience);
    EXPECT_EQ(queue_.pop(false), nullptr);
    clock_.advance(PriorityQueue::kPatience);
    EXPECT_EQ(queue_.pop(false), second);
}

TEST_F(PriorityQueueTest, AfterAPauseTheyWaitNoLongerThanBefore) {
    for (int i = 0; i < 5; ++i) push(kWhenNothingElseCan);
    for (const int waits : {1, 2, 4}) {
        clock_.advance(waits * PriorityQueue::kPatience - Nanoseconds(1));
        EXPECT_EQ(queue_.pop(false), nullptr);
        clock_.advance(Nanoseconds(1));
        EXPECT_NE(queue_.pop(false), nullptr);
    }
    EXPECT_NE(queue_.pop(true), nullptr);
    clock_.advance(PriorityQueue::kPatience);
    EXPECT_NE(queue_.pop(false), nullptr);
}

TEST_F(PriorityQueueTest, OthersBelowZeroWaitForEver) {
    Task* const low = push(kWhenNothingElseCan + 1);
    Task* const last = push(kWhenNothingElseCan);
    clock_.advance(100 * PriorityQueue::kPatience);
    EXPECT_EQ(queue_.pop(false), nullptr);
    EXPECT_EQ(queue_.pop(true), low);
    EXPECT_EQ(queue_.pop(false), nullptr);
    clock_.advance(PriorityQueue::kPatience);
    EXPECT_EQ(queue_.pop(false), last);
}

}  // namespace
}  // namespace heddle
