// What a home delegates to those who read on where nobody writes (docs/COHERENCE.md).
#include <gmock/gmock.h>

#include "support/memory_world.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kReadsThatAsk = 9;  // the last one is granted with all

class MemoryDelegationTest : public testing::Test {
  protected:
    /// Of the range, which lies on rank 1.
    GlobalRange at(uint64_t offset, uint64_t size) const { return {data_, {1000 + offset, size}}; }
    char read(const GlobalRange& global) {
        const auto local = world_.get<ConstLocalRange>(0, op::GetConst{global, cache_});
        const char first = static_cast<char>(*local.pointer());
        world_.finish(0, op::Release{local});
        return first;
    }
    op::Put put_of(const GlobalRange& global, char value, std::optional<Tag> tag = {}) {
        const auto local = world_.get<MutableLocalRange>(1, op::Allocate{global.range.size, writers_});
        std::memset(local.pointer(), value, global.range.size);
        return {local, global, tag, true};
    }
    void put(const GlobalRange& global, char value, std::optional<Tag> tag = {}) {
        world_.finish(1, put_of(global, value, tag));
    }
    /// Messages for a step.
    template <class Step>
    size_t messages(Step step) {
        const size_t before = world_.delivered();
        step();
        return world_.delivered() - before;
    }
    void read_until_it_is_delegated() {
        for (int i = 0; i < kReadsThatAsk; ++i)
            EXPECT_GT(messages([&] { read(at((i + 1) % 2 * 10U, 10)); }), 0U);
        EXPECT_EQ(messages([&] { read(at(30, 10)); }), 0U);
    }
    Piece piece(const GlobalRange& range) { return world_[0].node.atlas().pieces(range).front(); }
    bool is_delegated(const Piece& piece) { return world_[0].node.caching().is_delegated(piece); }
    bool is_delegated(const GlobalRange& range) { return is_delegated(piece(range)); }
    std::set<memory::Rank> sharers(const GlobalRange& range) { return world_[1].node.home().sharers(range); }

    MemoryWorld world_{2};
    SegmentId segment_ = world_.segment({1000, 1000});
    DataId data_ = world_.allocate(2000, segment_);
    CacheId cache_ = world_.cache(0, 10);
    CacheId writers_ = world_.cache(1, 40);
};

TEST_F(MemoryDelegationTest, WhoReadsOnWhereNobodyWritesNeedNotAsk) {
    put(at(50, 10), 'a');
    read_until_it_is_delegated();
    EXPECT_EQ(messages([&] { EXPECT_EQ(read(at(50, 10)), 'a'); }), 0U);
    EXPECT_THAT(sharers(at(90, 1)), ElementsAre(0));
}

/// The first one after the reads; the others as if there had been none.
TEST_F(MemoryDelegationTest, AWriterPaysForItOnce) {
    read_until_it_is_delegated();
    EXPECT_GT(messages([&] { put(at(60, 10), 'b'); }), 0U);
    EXPECT_THAT(sharers(at(0, 1000)), ElementsAre(0)) << "of what was read last there is a copy";
    EXPECT_EQ(messages([&] { put(at(80, 10), 'c'); }), 0U);
    EXPECT_EQ(read(at(60, 10)), 'b');
    EXPECT_EQ(read(at(80, 10)), 'c');
    EXPECT_GT(messages([&] { EXPECT_EQ(read(at(0, 10)), '\0'); }), 0U);
}

TEST_F(MemoryDelegationTest, WhoHasManyCopiesKeepsItButForWhatIsWritten) {
    cache_ = world_.cache(0, 1000);
    for (uint64_t i = 0; i < 300; ++i) read(at(i, 1));
    put(at(600, 10), 'd');
    EXPECT_THAT(sharers(at(600, 10)), IsEmpty());
    EXPECT_EQ(messages([&] { read(at(800, 1)); }), 0U);
    EXPECT_GT(messages([&] { EXPECT_EQ(read(at(600, 10)), 'd'); }), 0U);
}

/// The home delegates all to a read that had asked before it was told that a copy is gone.
TEST_F(MemoryDelegationTest, WhatIsGoneMeanwhileIsNotTakenForDelegated) {
    for (int i = 0; i < kReadsThatAsk - 1; ++i) read(at(i % 2 * 10U, 10));
    const Ticket asks = world_.start(0, op::GetConst{at(40, 10), world_.cache(0, 10)});
    world_.start(0, op::GetConst{{data_, {0, 10}}, cache_});  // for which the copy of 10 to 20 goes
    world_.run();
    EXPECT_TRUE(world_.ended(asks));
    EXPECT_TRUE(is_delegated(at(20, 10)));
    EXPECT_FALSE(is_delegated(at(10, 10)));
    EXPECT_THAT(sharers(at(20, 10)), ElementsAre(0));
    EXPECT_THAT(sharers(at(10, 10)), IsEmpty());
    cache_ = world_.cache(0, 10);
    EXPECT_GT(messages([&] { read(at(10, 10)); }), 0U);
    EXPECT_TRUE(is_delegated(at(10, 10)));
}

TEST_F(MemoryDelegationTest, WhatIsBeingReadIsNotGivenBack) {
    read_until_it_is_delegated();
    const op::Put elsewhere = put_of(at(60, 10), 'e'), there = put_of(at(70, 10), 'f');
    const Ticket own = world_.start(0, op::GetMutable{at(70, 10), world_.cache(0, 10)});
    const Ticket other = world_.start(1, elsewhere);
    while (world_[1].transfers.empty()) world_.step(0);
    world_.step(world_.steps() - 1);  // the put's
    EXPECT_TRUE(world_.ended(other));
    EXPECT_FALSE(world_.ended(own));
    EXPECT_THAT(sharers(at(70, 10)), ElementsAre(0));
    EXPECT_THAT(sharers(at(80, 10)), IsEmpty());
    const Ticket same = world_.start(1, there);
    while (world_.steps() > 1) world_.step(0);
    EXPECT_FALSE(world_.ended(same)) << "it is being read";
    world_.run();
    EXPECT_TRUE(world_.ended(own) && world_.ended(same));
    EXPECT_THAT(sharers(at(70, 10)), IsEmpty());
}

TEST_F(MemoryDelegationTest, WhereThereAreTagsEachReadAsks) {
    put(at(90, 1), 't', 7);
    for (int i = 0; i < 3 * kReadsThatAsk; ++i) EXPECT_GT(messages([&] { read(at(i % 2 * 10U, 10)); }), 0U);
    put(at(90, 1), 'u');
    read_until_it_is_delegated();
}

TEST_F(MemoryDelegationTest, ItGoesWithTheAllocationAndWithItsRank) {
    read_until_it_is_delegated();
    const Piece freed = piece(at(70, 10));
    EXPECT_TRUE(is_delegated(freed));
    world_.free(data_);
    EXPECT_FALSE(is_delegated(freed));
    data_ = world_.allocate(2000, segment_);
    read_until_it_is_delegated();
    EXPECT_TRUE(is_delegated(at(70, 10)));
    world_.lose(1);
    EXPECT_FALSE(is_delegated(at(70, 10)));
}

}  // namespace
}  // namespace heddle::test
