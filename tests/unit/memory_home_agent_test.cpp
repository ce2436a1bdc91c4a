// The directory of one rank, message by message: what becomes of a write whose rank goes, and of crowds.
#include "memory/home_agent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace heddle::memory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// What the home of rank 0 says to others. Its own rank has no copies, and says so when it is asked.
template <class Step>
std::vector<Message> said_to_others(HomeAgent& home, Step step) {
    std::vector<Message> all, others;
    step(all);
    for (size_t i = 0; i < all.size(); ++i) {
        Message message = all[i];
        if (message.kind != MessageKind::kInvalidate || message.to != 0) {
            others.push_back(message);
            continue;
        }
        message.kind = MessageKind::kInvalidated;
        home.handle(message, all);
    }
    return others;
}

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
        return short_of(said_to_others(home_, [&](auto& out) { home_.handle(message, out); }));
    }
    std::vector<std::pair<MessageKind, Rank>> loses(Rank rank) {
        return short_of(said_to_others(home_, [&](auto& out) { home_.lost(rank, out); }));
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

/// As many wait as a client may have under way. Where each looked at all others it would take minutes.
class MemoryHomeCrowdTest : public testing::Test {
  protected:
    static constexpr uint64_t kCrowd = 50'000;
    static constexpr std::chrono::seconds kLongest{30};

    std::vector<Message> says(MessageKind kind, const Range& range, uint64_t access,
                              std::optional<Tag> tag = {}) {
        Message message;
        message.kind = kind;
        message.from = 1;
        message.access = access;
        message.range = {{1}, range};
        message.tag = tag;
        return said_to_others(home_, [&](auto& out) { home_.handle(message, out); });
    }
    void TearDown() override {
        EXPECT_TRUE(home_.idle());
        EXPECT_LT(std::chrono::steady_clock::now() - begin_, kLongest);
    }

    HomeAgent home_{0};
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

TEST_F(MemoryHomeCrowdTest, WaitsForATagAreGivenUp) {
    for (const bool apart : {false, true}) {
        const auto range = [&](uint64_t i) { return Range{apart ? i : 0, 10}; };
        for (uint64_t i = 0; i < kCrowd; ++i)
            ASSERT_THAT(says(MessageKind::kTagRequest, range(i), i, 5), IsEmpty());
        for (uint64_t i = 0; i < kCrowd; ++i) says(MessageKind::kWaitGivenUp, range(i), i, 5);
        EXPECT_TRUE(home_.idle());
    }
}

TEST_F(MemoryHomeCrowdTest, WaitsForATagAreAnswered) {
    constexpr uint64_t kRanges = 100, kWriter = kCrowd;
    const auto range = [&](uint64_t i) { return Range{i % kRanges * 10, 10}; };
    for (uint64_t i = 0; i < kCrowd; ++i) says(MessageKind::kTagRequest, range(i), i, 5 + i % 2);
    for (uint64_t i = 0; i < 2 * kRanges; ++i) {
        const Tag tag = 5 + i / kRanges;
        says(MessageKind::kWriteRequest, range(i), kWriter, tag);
        const auto told = says(MessageKind::kWriteDone, range(i), kWriter, tag);
        // Of each range those with even numbers wait for one tag, or those with odd ones.
        EXPECT_EQ(told.size(), i % 2 == i / kRanges ? kCrowd / kRanges : 0) << i;
    }
}

TEST_F(MemoryHomeCrowdTest, WritesBehindOneGoOnWhenItHasEnded) {
    for (const bool apart : {false, true}) {
        const auto range = [&](uint64_t i) { return Range{apart ? i * 10 : 0, 10}; };
        const Range all{0, 10 * kCrowd};
        says(MessageKind::kWriteRequest, all, kCrowd);
        for (uint64_t i = 0; i < kCrowd; ++i)
            ASSERT_THAT(says(MessageKind::kWriteRequest, range(i), i), IsEmpty());
        EXPECT_EQ(says(MessageKind::kWriteGivenUp, all, kCrowd).size(), apart ? kCrowd : 1U);
        for (uint64_t i = 0; i < kCrowd; ++i) {
            const auto next = says(MessageKind::kWriteDone, range(i), i);
            ASSERT_EQ(next.size(), apart || i + 1 == kCrowd ? 0U : 1U);
            for (const Message& one : next) ASSERT_EQ(one.access, i + 1);
        }
    }
}

}  // namespace
}  // namespace heddle::memory
