// Changes that all ranks make, or none.
#include "memory/sequencer.hpp"

#include <gtest/gtest.h>

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using Kind = Command::Kind;

/// Three ranks, and what rank 0 sends them.
class MemorySequencerTest : public testing::Test {
  protected:
    void ask(Kind kind) {
        Command command;
        command.kind = kind;
        sequencer_.request(2, ++requests_, command, output_);
    }
    /// The command that is under way, of which there is one.
    [[nodiscard]] Command command() {
        EXPECT_EQ(output_.commands.size(), 1u);
        const auto [number, command] = output_.commands.front();
        number_ = number;
        output_.commands.clear();
        return command;
    }
    void applied(memory::Rank rank, const std::string& error = "") {
        Ending ending;
        ending.error = error;
        sequencer_.applied(rank, number_, ending, output_);
    }
    void all_applied() {
        for (memory::Rank rank = 0; rank < 3; ++rank) applied(rank);
    }
    [[nodiscard]] Ending ending() {
        EXPECT_EQ(output_.replies.size(), 1u);
        const Ending ending = output_.replies.front().ending;
        output_.replies.clear();
        return ending;
    }

    Sequencer sequencer_{3};
    Sequencer::Output output_;
    uint64_t requests_ = 0, number_ = 0;
};

TEST_F(MemorySequencerTest, AnAllocationThatOneRankRefusesIsFreedOnAll) {
    ask(Kind::kAllocate);
    ask(Kind::kReserveVersions);
    const Command allocate = command();
    EXPECT_EQ(allocate.kind, Kind::kAllocate);
    applied(0);
    applied(1, "there is no room");
    applied(2);
    EXPECT_TRUE(output_.replies.empty()) << "before it is undone";
    const Command free = command();
    EXPECT_EQ(free.kind, Kind::kFree);
    EXPECT_EQ(free.id, allocate.id);
    applied(0);
    applied(1, "there is no such allocation");
    applied(2);
    EXPECT_EQ(ending().error, "there is no room");
    EXPECT_EQ(command().kind, Kind::kReserveVersions) << "the next one";
}

TEST_F(MemorySequencerTest, AnAllocationIsFreedWhereARankGoes) {
    ask(Kind::kAllocate);
    (void)command();
    applied(0);
    applied(2);
    sequencer_.lost(1, output_);
    EXPECT_EQ(command().kind, Kind::kFree);
    applied(0);
    applied(2);
    EXPECT_EQ(ending().error, "rank 1 is gone");
}

TEST_F(MemorySequencerTest, WhatNoRankGotIsUndoneAndToldAndTheNextBegins) {
    ask(Kind::kCreateSegment);
    ask(Kind::kFree);
    EXPECT_EQ(command().kind, Kind::kCreateSegment);
    all_applied();
    EXPECT_EQ(command().kind, Kind::kAttachSegment);
    sequencer_.undeliverable(number_, {"it is too long", 0, -1, {}}, output_);
    EXPECT_EQ(command().kind, Kind::kDropSegment);
    all_applied();
    EXPECT_EQ(ending().error, "it is too long");
    EXPECT_EQ(command().kind, Kind::kFree);
    sequencer_.undeliverable(number_, {"this one, too", 0, -1, {}}, output_);
    EXPECT_EQ(ending().error, "this one, too");
}

TEST_F(MemorySequencerTest, ASegmentIsSealedOnceAllHaveAttachedIt) {
    ask(Kind::kCreateSegment);
    for (const Kind kind : {Kind::kCreateSegment, Kind::kAttachSegment, Kind::kSealSegment}) {
        EXPECT_EQ(command().kind, kind);
        EXPECT_TRUE(output_.replies.empty());
        all_applied();
    }
    EXPECT_EQ(ending().error, "");
    ask(Kind::kCreateSegment);
    (void)command();
    all_applied();
    (void)command();
    all_applied();
    EXPECT_EQ(command().kind, Kind::kSealSegment);
    sequencer_.lost(1, output_);
    applied(0);
    applied(2);
    EXPECT_EQ(command().kind, Kind::kDropSegment);
}

TEST_F(MemorySequencerTest, WhereARankIsGoneNoSegmentIsMadeAndNothingIsPlacedOnIt) {
    sequencer_.lost(1, output_);
    ask(Kind::kCreateSegment);
    EXPECT_TRUE(output_.commands.empty());
    EXPECT_EQ(ending().error, "rank 1 is gone");
    ask(Kind::kAllocate);
    EXPECT_EQ(command().gone, std::vector<memory::Rank>{1});
    applied(0);
    applied(2);
    EXPECT_EQ(ending().error, "");
}

}  // namespace
}  // namespace heddle::test
