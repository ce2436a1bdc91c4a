// The protocol case by case; tests/model/coherence_test.cpp has it at random.
#include <gmock/gmock.h>

#include <chrono>

#include "support/memory_world.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::HasSubstr;

class MemoryNodeTest : public testing::Test {
  protected:
    MemoryNodeTest() : segment_(world_.segment({64, 64})), data_(world_.allocate(100, segment_)) {}

    GlobalRange at(uint64_t offset, uint64_t size) const { return {data_, {offset, size}}; }
    ConstLocalRange get(memory::Rank rank, const GlobalRange& global, CacheId cache) {
        return world_.get<ConstLocalRange>(rank, op::GetConst{global, cache});
    }
    void put(memory::Rank rank, const GlobalRange& global, CacheId cache, char value,
             std::optional<Tag> tag = {}) {
        const auto local = world_.get<MutableLocalRange>(rank, op::Allocate{global.range.size, cache});
        std::memset(local.pointer(), value, global.range.size);
        world_.finish(rank, op::Put{local, global, tag, true});
    }
    void release(memory::Rank rank, const LocalRange& local) { world_.finish(rank, op::Release{local}); }
    std::string error(memory::Rank rank, const Operation& operation) {
        const auto* error = std::get_if<MemoryError>(&world_.finish(rank, operation));
        return error == nullptr ? "" : error->what();
    }
    CacheStatistics counters(memory::Rank rank, CacheId cache) {
        return world_[rank].node.caching().statistics(cache);
    }
    static char first(const ConstLocalRange& local) { return static_cast<char>(*local.pointer()); }

    MemoryWorld world_{2};
    SegmentId segment_;
    DataId data_;
    CacheId here_ = world_.cache(0, 40);
    CacheId there_ = world_.cache(1, 40);
};

TEST_F(MemoryNodeTest, AHitNeedsNoMessage) {
    release(0, get(0, at(60, 10), here_));
    const size_t before = world_.delivered();
    const auto again = get(0, at(62, 3), here_);  // a part of it, too
    EXPECT_EQ(world_.delivered(), before);
    EXPECT_EQ(again.range.size, 3U);
    EXPECT_EQ(counters(0, here_).hits, 1U);
    EXPECT_EQ(counters(0, here_).misses, 1U);
}

TEST_F(MemoryNodeTest, APutInvalidatesEverywhereAndPinnedReadersKeepTheirs) {
    put(0, at(45, 10), here_, 'a');  // on both ranks
    const auto old = get(1, at(45, 10), there_);
    EXPECT_EQ(first(old), 'a');
    put(0, at(50, 1), here_, 'b');
    EXPECT_EQ(first(old), 'a');
    const auto now = get(1, at(50, 1), there_);
    EXPECT_EQ(first(now), 'b');
    EXPECT_EQ(counters(1, there_).invalidations, 1U);
}

TEST_F(MemoryNodeTest, TwoWhoMissAtOnceFetchOnce) {
    const Ticket one = world_.start(1, op::GetConst{at(0, 8), there_});
    const Ticket other = world_.start(1, op::GetConst{at(0, 8), there_}, 2);
    world_.run();
    EXPECT_TRUE(world_.ended(one) && world_.ended(other));
    EXPECT_EQ(counters(1, there_).misses, 1U);
    EXPECT_EQ(counters(1, there_).hits_pending, 1U);
}

TEST_F(MemoryNodeTest, WhatWasPutAndReleasedIsACopy) {
    put(0, at(60, 10), here_, 'x');
    const size_t before = world_.delivered();
    EXPECT_EQ(first(get(0, at(60, 10), here_)), 'x');
    EXPECT_EQ(world_.delivered(), before);
    put(1, at(60, 1), there_, 'y');  // its home knows of that copy
    EXPECT_EQ(first(get(0, at(60, 10), here_)), 'y');
}

TEST_F(MemoryNodeTest, ATagIsWaitedForAndHoldsNothing) {
    const Ticket waiting = world_.start(1, op::GetConst{at(48, 4), there_, Tag{7}});
    world_.run();
    EXPECT_FALSE(world_.ended(waiting));
    EXPECT_EQ(counters(1, there_).free_bytes, 40U);
    put(0, at(48, 2), here_, 'p', 7);  // one of the two homes
    EXPECT_FALSE(world_.ended(waiting));
    put(0, at(48, 4), here_, 'q', 8);
    put(0, at(48, 4), here_, 'r', 7);
    ASSERT_TRUE(world_.ended(waiting));
    const auto& result = std::get<OperationResult>(world_.outcome(waiting));
    EXPECT_EQ(first(std::get<ConstLocalRange>(result)), 'r');
}

TEST_F(MemoryNodeTest, APutWithoutATagTakesTheMarkAway) {
    put(0, at(0, 4), here_, 'p', 7);
    put(0, at(1, 1), here_, 'q');
    const Ticket waiting = world_.start(0, op::GetConst{at(0, 4), here_, Tag{7}});
    world_.run();
    EXPECT_FALSE(world_.ended(waiting));
}

TEST_F(MemoryNodeTest, OneExclusiveAtATime) {
    const auto mine = world_.get<MutableLocalRange>(0, op::GetExclusive{at(40, 20), here_});
    const Ticket read = world_.start(1, op::GetConst{at(41, 1), there_});
    const Ticket other = world_.start(1, op::GetExclusive{at(59, 1), there_});
    world_.run();
    EXPECT_FALSE(world_.ended(read) || world_.ended(other));
    std::memset(mine.pointer(), 'e', 20);
    world_.finish(0, op::Put{mine, at(40, 20), {}, true});
    ASSERT_TRUE(world_.ended(read) && world_.ended(other));
    EXPECT_EQ(first(std::get<ConstLocalRange>(std::get<OperationResult>(world_.outcome(read)))), 'e');
}

/// Of an exclusive range only what is put has the tag; the rest is as it was, with the tag that it had.
TEST_F(MemoryNodeTest, OfAnExclusiveRangeAPartMayBePut) {
    put(0, at(40, 20), here_, 'a', 5);
    const auto mine = world_.get<MutableLocalRange>(0, op::GetExclusive{at(40, 20), here_});
    std::memset(mine.pointer(), 'b', 20);
    MutableLocalRange part = mine;
    part.range = {mine.range.offset + 4, 2};
    world_.finish(0, op::Put{part, at(44, 2), Tag{7}, false});
    const auto seen = [&](const GlobalRange& global, Tag tag) {
        return first(world_.get<ConstLocalRange>(1, op::GetConst{global, there_, tag}));
    };
    EXPECT_EQ(seen(at(44, 2), 7), 'b');
    EXPECT_EQ(seen(at(46, 14), 5), 'a');
    EXPECT_EQ(seen(at(40, 4), 5), 'a');
    const Ticket rest = world_.start(1, op::GetConst{at(40, 20), there_, Tag{7}});
    world_.run();
    EXPECT_FALSE(world_.ended(rest));
    put(0, at(40, 4), here_, 'c', 7);
    put(0, at(46, 14), here_, 'c', 7);
    EXPECT_TRUE(world_.ended(rest));
}

TEST_F(MemoryNodeTest, DirectRangesAreTheSegmentWhereItIsInOnePieceHere) {
    const auto direct = world_.get<MutableLocalRange>(0, op::GetMutable{at(10, 20), here_, {}, true});
    EXPECT_EQ(direct.pointer(), world_[0].parts[segment_].data() + 10);
    EXPECT_EQ(direct.cache, CacheId{});
    const auto spanning = world_.get<ConstLocalRange>(0, op::GetConst{at(45, 10), here_, {}, true});
    EXPECT_EQ(spanning.cache, here_);
    // What is written through it is published by its put, which moves nothing.
    const auto seen = get(1, at(10, 20), there_);
    std::memset(direct.pointer(), 'd', 20);
    world_.start(0, op::Put{direct, at(10, 20)});
    while (world_[0].transfers.empty()) world_.step(0);
    EXPECT_TRUE(world_[0].transfers.front().parts.empty());
    world_.run();
    EXPECT_EQ(first(seen), '\0');
    EXPECT_EQ(first(get(1, at(10, 20), there_)), 'd');
}

TEST_F(MemoryNodeTest, TheLeastRecentlyUsedCopiesGoAndNeighboursTogether) {
    for (uint64_t i = 0; i < 4; ++i) release(0, get(0, at(i * 10, 10), here_));
    release(0, get(0, at(0, 10), here_));
    const auto large = get(0, at(50, 20), here_);  // 10 to 30 goes
    EXPECT_EQ(counters(0, here_).evictions, 2U);
    release(0, get(0, at(0, 10), here_));
    release(0, get(0, at(30, 10), here_));
    EXPECT_EQ(counters(0, here_).misses, 5U);
    (void)get(0, at(0, 10), here_);
    (void)get(0, at(30, 10), here_);
    EXPECT_THAT(error(0, op::GetConst{at(10, 1), here_}), HasSubstr("3 local range(s) are in use"));
    EXPECT_THAT(error(0, op::GetConst{at(10, 41), here_}), HasSubstr("never fit"));
    release(0, large);
    EXPECT_EQ(error(0, op::GetConst{at(80, 20), here_}), "");
}

TEST_F(MemoryNodeTest, ACacheAsLargeAsItsPayloadHoldsIt) {
    (void)get(0, at(0, 13), here_);
    (void)get(0, at(20, 26), here_);
    (void)get(0, at(90, 1), here_);
    EXPECT_EQ(counters(0, here_).free_bytes, 0U);
}

/// As large as what is in use is enough, also where what one gets to write was there as a copy.
TEST_F(MemoryNodeTest, ACopyIsTakenOverWhereThereIsNoRoomForAnother) {
    put(0, at(40, 20), here_, 'a');
    put(0, at(0, 20), here_, 'b');
    const auto one = world_.get<MutableLocalRange>(0, op::GetMutable{at(40, 20), here_});
    const auto other = world_.get<MutableLocalRange>(0, op::GetMutable{at(5, 10), here_});
    EXPECT_EQ(static_cast<char>(*one.pointer()), 'a');
    EXPECT_EQ(static_cast<char>(*other.pointer()), 'b');
    EXPECT_EQ(other.range.size, 10U);
    EXPECT_EQ(counters(0, here_).hits, 2U);
    // They are nobody else's, and no home knows of them any more.
    for (memory::Rank rank = 0; rank < 2; ++rank)
        EXPECT_TRUE(world_[rank].node.home().sharers(at(0, 100)).empty());
    std::memset(one.pointer(), 'c', 20);
    EXPECT_EQ(first(get(1, at(40, 20), there_)), 'a');
    world_.finish(0, op::Put{one, at(40, 20), {}, true});
    EXPECT_EQ(first(get(1, at(40, 20), there_)), 'c');
    release(0, other);
    EXPECT_EQ(counters(0, here_).free_bytes, 20U);
    EXPECT_TRUE(world_.idle());
}

/// A message that takes back what was asked for meanwhile would leave a reader whom no put waits for.
/// What is in use needs no more room than it has bytes.
TEST_F(MemoryNodeTest, OfACopyThatIsTakenOverTheRestIsRoomForOthers) {
    put(1, at(60, 40), there_, 'x');
    release(0, get(0, at(60, 40), here_));
    const auto part = world_.get<MutableLocalRange>(0, op::GetMutable{at(70, 10), here_});
    EXPECT_EQ(static_cast<char>(*part.pointer()), 'x');
    const auto before = get(0, at(0, 10), here_), behind = get(0, at(20, 20), here_);
    EXPECT_EQ(error(0, op::GetConst{at(50, 1), here_}).find("1 bytes in one piece") == std::string::npos,
              false);
    release(0, before);
    release(0, behind);
    std::memset(part.pointer(), 'y', 10);
    world_.finish(0, op::Put{part, at(70, 10), {}, true});
    const size_t messages = world_.delivered();
    EXPECT_EQ(first(get(0, at(70, 10), here_)), 'y');
    EXPECT_EQ(world_.delivered(), messages) << "what was put stays as a copy";
}

TEST_F(MemoryNodeTest, WhatIsEvictedWhileItIsFetchedAgainStaysKnown) {
    put(1, at(0, 8), there_, 'o');
    release(1, get(1, at(0, 8), there_));
    const CacheId second = world_.cache(1, 8);
    const Ticket own = world_.start(1, op::GetMutable{at(0, 8), second});
    world_.remove_cache(1, there_);  // its copy goes while the other one is under way
    while (world_[1].transfers.empty()) world_.step(0);
    EXPECT_TRUE(world_[0].node.home().sharers(at(0, 8)).contains(1));
    world_.run();
    EXPECT_TRUE(world_.ended(own));
    EXPECT_TRUE(world_[0].node.home().sharers(at(0, 8)).empty());
}

TEST_F(MemoryNodeTest, AClientThatGoesLeavesNothing) {
    const auto mine = world_.get<MutableLocalRange>(0, op::GetExclusive{at(40, 20), here_}, 5);
    (void)world_.get<ConstLocalRange>(0, op::GetConst{at(0, 5), here_}, 5);
    std::memset(mine.pointer(), 'z', 20);
    world_.start(1, op::GetConst{at(3, 1), there_, Tag{3}}, 6);
    const Ticket put = world_.start(0, op::Put{mine, at(40, 20)}, 5);
    world_.drop_client(0, 5);
    world_.drop_client(1, 6);
    world_.run();
    EXPECT_TRUE(world_.idle());
    EXPECT_EQ(world_[0].node.caching().held_ranges(), 0U);
    EXPECT_TRUE(std::holds_alternative<MemoryError>(world_.outcome(put)));  // but it is whole
    EXPECT_EQ(first(get(1, at(59, 1), there_)), 'z');
}

TEST_F(MemoryNodeTest, AFailedTransferIsToldAndLeavesNothing) {
    world_.fail_transfers = true;
    EXPECT_THAT(error(1, op::GetConst{at(0, 8), there_}), HasSubstr("could not be read: the cable is out"));
    EXPECT_THAT(error(1, op::GetExclusive{at(0, 8), there_}), HasSubstr("could not be read"));
    const auto local = world_.get<MutableLocalRange>(1, op::Allocate{8, there_});
    EXPECT_THAT(error(1, op::Put{local, at(0, 8), Tag{1}}), HasSubstr("could not be written, or not all"));
    EXPECT_THAT(error(1, op::Put{local, at(0, 8), {}, true}), HasSubstr("could not be written, or not all"));
    release(1, local);
    world_.fail_transfers = false;
    EXPECT_TRUE(world_.idle());
    EXPECT_EQ(counters(1, there_).free_bytes, 40U);
    EXPECT_EQ(error(0, op::GetExclusive{at(0, 8), here_}), "");
}

TEST_F(MemoryNodeTest, APutThatFailsKeepsItsSourceForTheNext) {
    const auto local = world_.get<MutableLocalRange>(1, op::Allocate{8, there_});
    local.pointer()[0] = std::byte{'k'};
    world_.fail_transfers = true;
    const Ticket put = world_.start(1, op::Put{local, at(0, 8), {}, true});
    for (const Ticket refused :
         {world_.start(1, op::Put{local, at(0, 8)}), world_.start(1, op::Release{local})})
        EXPECT_THAT(std::get<MemoryError>(world_.outcome(refused)).what(),
                    HasSubstr("is not held any more, unless the put that is to release it fails"));
    world_.run();
    EXPECT_TRUE(std::holds_alternative<MemoryError>(world_.outcome(put)));
    world_.fail_transfers = false;
    EXPECT_EQ(error(1, op::Put{local, at(0, 8), {}, true}), "");
    EXPECT_EQ(first(get(0, at(0, 8), here_)), 'k');
    EXPECT_EQ(error(1, op::GetConst{at(0, 8), there_}), "");
    EXPECT_EQ(counters(1, there_).hits, 1U);
    EXPECT_THAT(error(1, op::Release{local}), HasSubstr("was released"));
}

TEST_F(MemoryNodeTest, OfAClientThatLeavesNothingStaysWherePutsFail) {
    const auto local = world_.get<MutableLocalRange>(1, op::Allocate{8, there_});
    world_.fail_transfers = true;
    world_.start(1, op::Put{local, at(0, 8), {}, true});
    while (world_[1].transfers.empty()) world_.step(0);
    world_.drop_client(1, 1);
    EXPECT_EQ(world_[1].node.caching().in_use(there_), 1U);
    world_.run();
    EXPECT_TRUE(world_.idle());
    EXPECT_EQ(world_[1].node.caching().held_ranges(), 0U);
    EXPECT_EQ(counters(1, there_).free_bytes, 40U);
}

/// Whatever it waits for, and however much of it there is.
TEST_F(MemoryNodeTest, OfAClientThatDiesACrowdGoesAtOnce) {
    constexpr int kCrowd = 20'000;
    const auto begin = std::chrono::steady_clock::now();
    const auto mine = world_.get<MutableLocalRange>(0, op::GetExclusive{at(40, 20), here_});
    const auto own = world_.get<MutableLocalRange>(0, op::Allocate{2, here_}, 7);
    std::vector<Ticket> waits;
    for (int i = 0; i < kCrowd; ++i) {
        waits.push_back(world_.start(0, op::GetConst{at(0, 5), here_, Tag{5}}, 7));
        waits.push_back(world_.start(0, op::Put{own, at(40, 2), Tag{1}, false, 1}, 7));
        (void)world_.get<MutableLocalRange>(0, op::GetMutable{at(0, 5), here_, {}, true}, 7);
    }
    const Ticket others = world_.start(0, op::GetConst{at(0, 5), here_, Tag{5}}, 8);
    EXPECT_EQ(world_[0].node.caching().held_ranges(), kCrowd + 2U);
    world_.drop_client(0, 7, true);
    EXPECT_EQ(world_[0].node.caching().held_ranges(), 1U);
    for (const Ticket ticket : waits) EXPECT_TRUE(world_.ended(ticket));
    EXPECT_FALSE(world_.ended(others));
    world_.give_up(0, others, 8);
    EXPECT_TRUE(world_.ended(others));
    release(0, mine);
    EXPECT_TRUE(world_.idle());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

/// Whoever frees what others use has made a mistake, and they are told.
TEST_F(MemoryNodeTest, WhatIsFreedWhileItIsUsedFailsWhatWaitsForIt) {
    const auto mine = world_.get<MutableLocalRange>(0, op::GetExclusive{at(40, 20), here_});
    const auto seen = get(1, at(0, 5), there_);
    const Ticket read = world_.start(1, op::GetConst{at(41, 1), there_});
    const Ticket write = world_.start(0, op::Put{mine, at(40, 20)});
    const Ticket tag = world_.start(1, op::GetConst{at(3, 1), there_, Tag{3}});
    while (world_[0].transfers.empty()) world_.step(0);  // the put is under way
    world_.free(data_);
    world_.run();
    for (const Ticket waited : {read, tag})
        EXPECT_THAT(std::get<MemoryError>(world_.outcome(waited)).what(), HasSubstr("was freed meanwhile"));
    EXPECT_TRUE(std::holds_alternative<OperationResult>(world_.outcome(write)));
    EXPECT_THAT(error(0, op::GetConst{at(0, 1), here_}), HasSubstr("no allocation"));
    EXPECT_EQ(seen.range.size, 5U);  // it stays as it is
    release(1, seen);
    release(0, mine);
    EXPECT_TRUE(world_.idle());
    EXPECT_EQ(counters(0, here_).free_bytes + counters(1, there_).free_bytes, 80U);
}

/// The bytes of a direct range are somebody else's next.
TEST_F(MemoryNodeTest, WhatIsFreedIsNotReadByAPutToAnother) {
    const DataId other = world_.allocate(8, segment_);
    const auto direct = world_.get<MutableLocalRange>(0, op::GetMutable{at(0, 8), here_, {}, true});
    ASSERT_EQ(world_[0].node.caching().in_use(here_), 0U);
    const auto held = world_.get<MutableLocalRange>(1, op::GetExclusive{{other, {0, 8}}, there_});
    const Ticket waits = world_.start(0, op::Put{direct, {other, {0, 8}}});
    world_.run();
    world_.free(data_);
    release(1, held);
    ASSERT_TRUE(world_.ended(waits));
    EXPECT_THAT(std::get<MemoryError>(world_.outcome(waits)).what(),
                HasSubstr("the allocation that it was to read was freed meanwhile"));
    EXPECT_THAT(error(0, op::Put{direct, {other, {0, 8}}}), HasSubstr("was freed"));
    release(0, direct);
    EXPECT_TRUE(world_.idle());
}

TEST_F(MemoryNodeTest, WhatAPutReadsDirectlyIsMovingUntilItIsPut) {
    const DataId other = world_.allocate(8, segment_);
    const auto direct = world_.get<MutableLocalRange>(0, op::GetMutable{at(0, 8), here_, {}, true});
    const Ticket put = world_.start(0, op::Put{direct, {other, {0, 8}}, {}, true});
    while (world_[0].transfers.empty()) world_.step(0);
    EXPECT_TRUE(world_[0].node.caching().is_moving(data_));
    world_.free(data_);
    EXPECT_TRUE(world_[0].node.caching().is_moving(data_));
    world_.run();
    EXPECT_TRUE(std::holds_alternative<OperationResult>(world_.outcome(put)));
    EXPECT_FALSE(world_[0].node.caching().is_moving(data_));
}

/// What its client had begun to put before it left is not put into what has its bytes next.
TEST_F(MemoryNodeTest, WhatIsFreedEndsPutsWhoseClientHasLeft) {
    const auto mine = world_.get<MutableLocalRange>(0, op::GetExclusive{at(0, 8), here_});
    const auto other = world_.get<MutableLocalRange>(1, op::Allocate{8, there_}, 2);
    world_.start(1, op::Put{other, at(0, 8), {}, true}, 2);
    world_.run();
    world_.drop_client(1, 2);
    world_.free(data_);
    world_.run();
    release(0, mine);
    EXPECT_TRUE(world_.idle());
    EXPECT_EQ(counters(0, here_).free_bytes + counters(1, there_).free_bytes, 80U);
}

TEST_F(MemoryNodeTest, WhatCannotBeIsRefusedAtOnce) {
    const auto local = get(0, at(0, 8), here_);
    LocalRange part = local;
    part.range = {local.range.offset + 4, 5};
    EXPECT_THAT(error(0, op::Put{part, at(0, 5)}), HasSubstr("5 bytes from 4 on are not all in local range"));
    EXPECT_THAT(error(0, op::GetConst{at(99, 2), here_}), HasSubstr("not all in allocation"));
    EXPECT_THAT(error(0, op::GetConst{at(0, 2), there_}), HasSubstr("this rank has no cache"));
    EXPECT_THAT(
        [&] {
            world_.start(0, op::Put{local, at(0, 7)});
        },
        testing::ThrowsMessage<Error>(
            HasSubstr("a local range of 8 bytes cannot be put to a global one of 7")));
    release(0, local);
    EXPECT_THAT(error(0, op::Release{local}), HasSubstr("was released"));
    EXPECT_THAT(error(0, op::Put{local, at(0, 8)}), HasSubstr("was released"));
    EXPECT_TRUE(world_.idle());
}

}  // namespace
}  // namespace heddle::test
