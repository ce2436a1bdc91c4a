// The directory of one rank, message by message: what becomes of a write whose rank goes.
#include "memory/home_agent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::memory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MemoryHomeAgentTest : public testing::Test {
  protected:
    /// "kind of rank" of each answer, in the words of the test.
    std::vector<std::pair<MessageKind, Rank>> says(MessageKind kind, Rank from, std::optional<Tag> tag = {},
                                                   uint64_t access = 1) {
        Message message;
        message.kind = kind;
        message.from = from;
        message.access = access;
        message.range = kRange;
        message.tag = tag;
        std::vector<Message> out;
        home_.handle(message, out);
        return short_of(out);
    }
    std::vector<std::pair<MessageKind, Rank>> loses(Rank rank) {
        std::vector<Message> out;
        home_.lost(rank, out);
        return short_of(out);
    }
    static std::vector<std::pair<MessageKind, Rank>> short_of(const std::vector<Message>& out) {
        std::vector<std::pair<MessageKind, Rank>> all;
        for (const Message& one : out) all.emplace_back(one.kind, one.to);
        return all;
    }
    /// Rank 1 has written the range with tag 5, and rank 2 has a copy.
    void SetUp() override {
        ASSERT_THAT(says(MessageKind::kWriteRequest, 1), ElementsAre(std::pair(MessageKind::kWriteGrant, 1)));
        ASSERT_THAT(says(MessageKind::kWriteDone, 1, 5), IsEmpty());
        ASSERT_THAT(says(MessageKind::kReadRequest, 2), ElementsAre(std::pair(MessageKind::kReadGrant, 2)));
    }

    static constexpr GlobalRange kRange{{1}, {0, 10}};
    HomeAgent home_{0};
};

/// Both have the same number for it, as ranks count by themselves.
TEST_F(MemoryHomeAgentTest, ANextWriterWaitsForTheCopiesThatOneThatIsGoneWasWaitingFor) {
    EXPECT_THAT(says(MessageKind::kWriteRequest, 3), ElementsAre(std::pair(MessageKind::kInvalidate, 2)));
    EXPECT_THAT(says(MessageKind::kWriteRequest, 4), IsEmpty());
    EXPECT_THAT(loses(3), IsEmpty());
    EXPECT_THAT(says(MessageKind::kInvalidated, 2), ElementsAre(std::pair(MessageKind::kWriteGrant, 4)));
    EXPECT_THAT(says(MessageKind::kWriteGivenUp, 4), IsEmpty());
    EXPECT_TRUE(home_.idle());
}

TEST_F(MemoryHomeAgentTest, ACopyThatGoesWithItsRankIsNotWaitedFor) {
    EXPECT_THAT(says(MessageKind::kWriteRequest, 3), ElementsAre(std::pair(MessageKind::kInvalidate, 2)));
    EXPECT_THAT(says(MessageKind::kWriteRequest, 4), IsEmpty());
    EXPECT_THAT(loses(3), IsEmpty());
    EXPECT_THAT(loses(2), ElementsAre(std::pair(MessageKind::kWriteGrant, 4)));
}

/// What was to be written is as it was, with its tag; what may have been written in part has none.
TEST_F(MemoryHomeAgentTest, ATagGoesWithAWriterThatWasGranted) {
    EXPECT_THAT(says(MessageKind::kWriteRequest, 3), ElementsAre(std::pair(MessageKind::kInvalidate, 2)));
    EXPECT_THAT(loses(3), IsEmpty());
    EXPECT_THAT(says(MessageKind::kInvalidated, 2), IsEmpty());
    EXPECT_THAT(says(MessageKind::kReadRequest, 2, 5), ElementsAre(std::pair(MessageKind::kReadGrant, 2)));
    EXPECT_THAT(says(MessageKind::kWriteRequest, 4), ElementsAre(std::pair(MessageKind::kInvalidate, 2)));
    EXPECT_THAT(says(MessageKind::kInvalidated, 2), ElementsAre(std::pair(MessageKind::kWriteGrant, 4)));
    EXPECT_THAT(loses(4), IsEmpty());
    EXPECT_THAT(says(MessageKind::kReadRequest, 2, 5), ElementsAre(std::pair(MessageKind::kReadRefused, 2)));
}

}  // namespace
}  // namespace heddle::memory
