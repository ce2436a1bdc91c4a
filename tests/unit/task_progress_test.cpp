// The line that a terminal shows of an algorithm's tasks.
#include "task_progress.hpp"

#include <gtest/gtest.h>

namespace heddle::tool {
namespace {

TEST(TaskProgress, TellsTheRateAndWhatIsLeft) {
    EXPECT_EQ(progress_text(0, 12'341, 3), "0 of 12,341 tasks");
    EXPECT_EQ(progress_text(1'200, 4'960, 3), "1,200 of 4,960 tasks, 400 a second, 9 s left");
    EXPECT_EQ(progress_text(10, 1'000, 100), "10 of 1,000 tasks, 0.1 a second, 165 min 0 s left");
    EXPECT_EQ(progress_text(7, 7, 0.001), "7 of 7 tasks, 7,000 a second, 0 s left");
    EXPECT_EQ(progress_text(5, 3, 1), "5 of 3 tasks, 5 a second, 0 s left")
        << "counts are read one after the other";
    EXPECT_EQ(progress_text(1, 2, 0), "1 of 2 tasks");
}

}  // namespace
}  // namespace heddle::tool
