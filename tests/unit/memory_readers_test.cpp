// Puts that are to be read by so many before the next one: docs/COHERENCE.md, Readers.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "heddle/memory.hpp"
#include "support/memory_world.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::HasSubstr;
using testing::ThrowsMessage;

class MemoryReadersTest : public testing::Test {
  protected:
    /// Bytes 0 to 49 lie on rank 0, the others on rank 1.
    MemoryReadersTest() : segment_(world_.segment({400, 400})), data_(world_.allocate(100, segment_)) {}

    GlobalRange at(uint64_t offset, uint64_t size) const { return {data_, {offset, size}}; }
    Ticket put(memory::Rank rank, const GlobalRange& global, char value, std::optional<Tag> tag,
               uint32_t readers = 0, uint32_t retain = 0, ClientId client = 1) {
        const CacheId cache = rank == 0 ? here_ : there_;
        const auto local =
            world_.get<MutableLocalRange>(rank, op::Allocate{global.range.size, cache}, client);
        std::memset(local.pointer(), value, global.range.size);
        const Ticket ticket = world_.start(rank, op::Put{local, global, tag, true, readers, retain}, client);
        world_.run();
        return ticket;
    }
    Ticket get(memory::Rank rank, const GlobalRange& global, std::optional<Tag> tag, ClientId client = 1) {
        const CacheId cache = rank == 0 ? here_ : there_;
        const Ticket ticket = world_.start(rank, op::GetConst{global, cache, tag}, client);
        world_.run();
        return ticket;
    }
    char seen(Ticket ticket) {
        if (!world_.ended(ticket)) return '-';
        const auto* result = std::get_if<OperationResult>(&world_.outcome(ticket));
        return result == nullptr ? '!' : static_cast<char>(*std::get<ConstLocalRange>(*result).pointer());
    }
    std::string error(Ticket ticket) {
        const auto* error = std::get_if<MemoryError>(&world_.outcome(ticket));
        return error == nullptr ? "" : error->what();
    }

    MemoryWorld world_{2};
    SegmentId segment_;
    DataId data_;
    CacheId here_ = world_.cache(0, 400);
    CacheId there_ = world_.cache(1, 400);
};

TEST_F(MemoryReadersTest, TheNextPutWaitsForAllReadersOfEachByte) {
    put(0, at(40, 20), 'a', 1, 2);  // on both ranks
    const Ticket next = put(0, at(40, 20), 'b', 2);
    EXPECT_FALSE(world_.ended(next));
    EXPECT_EQ(seen(get(1, at(40, 20), 1)), 'a');
    EXPECT_FALSE(world_.ended(next));
    EXPECT_EQ(seen(get(1, at(40, 10), 1)), 'a');  // only what is on rank 0
    EXPECT_FALSE(world_.ended(next));
    EXPECT_EQ(seen(get(0, at(50, 10), 1)), 'a');
    EXPECT_TRUE(world_.ended(next));
    EXPECT_EQ(seen(get(0, at(40, 20), 2)), 'b');
    EXPECT_TRUE(world_.idle());
}

TEST_F(MemoryReadersTest, HitsCountAndThoseWithoutTheTagDoNot) {
    put(1, at(0, 4), 'a', 1, 4);
    EXPECT_EQ(seen(get(0, at(0, 4), {})), 'a');
    EXPECT_EQ(seen(get(1, at(0, 4), 1)), 'a');  // put_and_release left a copy: no transfer
    const Ticket next = put(1, at(1, 1), 'b', {});
    EXPECT_EQ(seen(get(0, at(0, 4), {})), 'a');  // reads go on
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(seen(get(0, at(0, 4), 1)), 'a');
        EXPECT_FALSE(world_.ended(next)) << i;
    }
    // Two at once, of which one waits for the other's transfer.
    EXPECT_EQ(seen(get(0, at(0, 4), 1)), 'a');
    EXPECT_TRUE(world_.ended(next));
}

TEST_F(MemoryReadersTest, TwoWhoShareATransferAreTwo) {
    put(1, at(0, 4), 'a', 1, 2);
    world_.start(0, op::GetConst{at(0, 4), here_, Tag{1}}, 1);
    world_.start(0, op::GetConst{at(0, 4), here_, Tag{1}}, 2);
    world_.run();
    EXPECT_TRUE(world_.ended(put(1, at(0, 4), 'b', 2)));
}

TEST_F(MemoryReadersTest, MoreReadersThanWereSaidAreNoHarm) {
    put(0, at(0, 4), 'a', 1, 1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(seen(get(1, at(0, 4), 1)), 'a');
    EXPECT_TRUE(world_.ended(put(0, at(0, 4), 'b', 2, 1)));
    EXPECT_FALSE(world_.ended(put(0, at(0, 4), 'c', 3)));
}

TEST_F(MemoryReadersTest, APutInPlaceGoesWhereItIsToWhereRoomForVersionsCameMeanwhile) {
    put(0, at(0, 8), 'a', 1, 1);
    const auto direct =
        world_.get<MutableLocalRange>(0, op::GetMutable{at(0, 8), here_, {}, /*prefer_direct=*/true}, 1);
    std::memset(direct.pointer(), 'd', 8);
    const Ticket waits = world_.start(0, op::Put{direct, at(0, 8), Tag{9}, true}, 1);
    world_.run();
    EXPECT_FALSE(world_.ended(waits));
    world_.reserve_versions(data_, 2);
    put(1, at(0, 8), 'b', 2, 0, 1);
    get(1, at(0, 8), 1);  // for which it waits
    ASSERT_TRUE(world_.ended(waits));
    EXPECT_EQ(seen(get(1, at(0, 8), 9)), 'd');
}

/// Each of them, though the reader has read for both.
TEST_F(MemoryReadersTest, WritersOfDifferentBytesAreToldOfTheSameDeath) {
    for (const uint64_t offset : {0, 8}) put(0, at(offset, 8), 'a', 1, 1);
    get(1, at(0, 16), 1, 7);
    for (const ClientId offset : {0U, 8U}) put(0, at(offset, 8), 'b', 2, 1, 0, 1 + offset);
    const Ticket first = put(0, at(0, 8), 'c', 3, 1, 0, 1), second = put(0, at(8, 8), 'c', 3, 1, 0, 9);
    world_.drop_client(1, 7, true);
    world_.run();
    for (const Ticket one : {first, second}) {
        ASSERT_TRUE(world_.ended(one));
        EXPECT_THAT(error(one), HasSubstr("have died"));
    }
}

/// A client that has read one version and dies before the next: who puts is told once, and the others are
/// waited for.
TEST_F(MemoryReadersTest, WhoDiesUnreadHoldsNobody) {
    put(0, at(40, 20), 'a', 1, 2);
    get(1, at(40, 20), 1, 7);
    get(0, at(40, 20), 1, 8);
    put(0, at(40, 20), 'b', 2, 2);
    const Ticket waits = put(0, at(40, 20), 'c', 3, 2);
    EXPECT_FALSE(world_.ended(waits));
    world_.drop_client(1, 7, true);
    world_.run();
    ASSERT_TRUE(world_.ended(waits));
    EXPECT_THAT(error(waits), HasSubstr("1 client(s) that were to read it have died"));
    const Ticket again = put(0, at(40, 20), 'c', 3, 1);
    EXPECT_FALSE(world_.ended(again)) << "the other has not read yet";
    EXPECT_EQ(seen(get(0, at(40, 20), 2, 8)), 'b');
    EXPECT_TRUE(world_.ended(again));
    EXPECT_EQ(error(again), "");
    EXPECT_EQ(seen(get(0, at(40, 20), 3, 8)), 'c');
    EXPECT_EQ(error(put(0, at(40, 20), 'd', 4)), "");
    EXPECT_TRUE(world_.idle());
}

TEST_F(MemoryReadersTest, WhoDiesWhileNobodyWaitsIsToldOfToo) {
    put(0, at(0, 8), 'a', 1, 1);
    get(1, at(0, 4), 1, 7);
    get(1, at(4, 4), 1, 8);
    world_.drop_client(1, 7, true);
    world_.run();
    EXPECT_EQ(error(put(0, at(4, 4), 'b', 2, 1)), "") << "it has not read these";
    EXPECT_THAT(error(put(0, at(0, 4), 'b', 2, 1)), HasSubstr("have died"));
    EXPECT_EQ(error(put(0, at(0, 4), 'b', 2, 1)), "");
    // Who leaves in order is waited for: another one may come for it.
    get(1, at(0, 8), 2, 8);
    put(0, at(0, 8), 'c', 3, 1);
    world_.drop_client(1, 8);
    world_.run();
    const Ticket waits = put(0, at(0, 8), 'd', 4);
    EXPECT_FALSE(world_.ended(waits));
    get(1, at(0, 8), 3, 9);
    EXPECT_EQ(error(waits), "");
}

TEST_F(MemoryReadersTest, ExclusiveRangesWaitWithoutRoom) {
    put(0, at(40, 20), 'a', 1, 1);
    const Ticket alone = world_.start(1, op::GetExclusive{at(45, 10), there_});
    world_.run();
    EXPECT_FALSE(world_.ended(alone));
    EXPECT_EQ(world_[1].node.caching().statistics(there_).free_bytes, 400U);
    get(0, at(40, 20), 1);
    ASSERT_TRUE(world_.ended(alone));
    const auto local = std::get<MutableLocalRange>(std::get<OperationResult>(world_.outcome(alone)));
    EXPECT_EQ(static_cast<char>(*local.pointer()), 'a');
    world_.finish(1, op::Put{local, at(45, 10), Tag{2}, true, 1});
    EXPECT_FALSE(world_.ended(put(0, at(45, 1), 'c', 3)));
}

/// A direct range is no snapshot, so it has been read when it is not looked at any more.
TEST_F(MemoryReadersTest, DirectRangesCountWhenTheyAreReleasedOrPut) {
    put(1, at(0, 4), 'a', 1, 2);  // so that rank 0 has no copy, which it would prefer
    const auto local = world_.get<ConstLocalRange>(0, op::GetConst{at(0, 4), here_, Tag{1}, true});
    const auto own = world_.get<MutableLocalRange>(0, op::GetMutable{at(0, 4), here_, Tag{1}, true});
    EXPECT_EQ(local.cache, CacheId{});
    const Ticket next = put(1, at(2, 1), 'b', 2);
    EXPECT_FALSE(world_.ended(next));
    world_.finish(0, op::Release{local});
    EXPECT_FALSE(world_.ended(next));
    world_.finish(0, op::Put{own, at(0, 4), {}, true});
    EXPECT_TRUE(world_.ended(next));
}

/// What a put that is refused was to be made of has not been read by it.
TEST_F(MemoryReadersTest, ADirectRangeIsReadByThePutThatTakesPlace) {
    put(1, at(0, 4), 'a', 1, 1);
    const auto direct = world_.get<MutableLocalRange>(0, op::GetMutable{at(0, 4), here_, Tag{1}, true});
    EXPECT_THAT(error(world_.start(0, op::Put{direct, at(98, 4)})), HasSubstr("not all in allocation"));
    const Ticket next = put(1, at(0, 4), 'b', 2);
    EXPECT_FALSE(world_.ended(next));
    world_.finish(0, op::Release{direct});
    EXPECT_TRUE(world_.ended(next));
}

/// The put was on its way to a slot of its own.
TEST_F(MemoryReadersTest, AWriterThatDiesLeavesTheRetainedVersionWhole) {
    world_.reserve_versions(data_, 2);
    put(0, at(0, 8), 'a', 1, 2);
    const auto own = world_.get<MutableLocalRange>(1, op::Allocate{8, there_});
    std::memset(own.pointer(), 'b', 8);
    world_.start(1, op::Put{own, at(0, 8), Tag{2}, true, 2, 1});
    while (world_[1].transfers.empty()) world_.step(0);
    world_.lose(1);
    EXPECT_EQ(seen(get(0, at(0, 8), 1)), 'a');
    EXPECT_EQ(seen(get(0, at(0, 8), {})), 'a');
    EXPECT_EQ(seen(get(0, at(0, 8), 2)), '-');
}

/// A reader may be as many versions behind another one as are retained.
TEST_F(MemoryReadersTest, RetainedVersionsAreThereAtOnce) {
    world_.reserve_versions(data_, 3);
    std::vector<Ticket> puts;
    for (char value = 'a'; value < 'f'; ++value)
        puts.push_back(put(0, at(40, 20), value, static_cast<Tag>(value), 2, 2));
    const auto ended = [&] {
        std::string all;
        for (const Ticket one : puts) all += world_.ended(one) ? 'x' : '-';
        return all;
    };
    EXPECT_EQ(ended(), "xxx--");
    for (const char fast : {'a', 'b', 'c'})
        EXPECT_EQ(seen(get(1, at(40, 20), static_cast<Tag>(fast), 7)), fast);
    const Ticket early = get(1, at(40, 20), 'd', 7);
    EXPECT_EQ(seen(early), '-');
    EXPECT_EQ(seen(get(0, at(40, 20), {}, 8)), 'c') << "without a tag it is the newest";
    EXPECT_EQ(seen(get(0, at(40, 20), 'a', 8)), 'a');
    EXPECT_EQ(ended(), "xxxx-");
    EXPECT_EQ(seen(early), 'd');
    EXPECT_EQ(seen(get(0, at(40, 20), 'c', 8)), 'c');
    EXPECT_EQ(ended(), "xxxxx") << "two earlier ones are left, which the last one retains";
    EXPECT_EQ(seen(get(0, at(40, 20), 'b', 8)), 'b');
    EXPECT_EQ(seen(get(0, at(40, 20), {}, 8)), 'e') << "what was got of an earlier one is not found";
    EXPECT_EQ(seen(get(0, at(40, 20), 'e', 8)), 'e');
    EXPECT_TRUE(world_.idle());
}

/// Who retains fewer waits for more; bytes of different versions make up one range.
TEST_F(MemoryReadersTest, EachByteHasItsOwnVersions) {
    world_.reserve_versions(data_, 3);
    put(0, at(0, 100), 'a', 1, 1);
    put(1, at(20, 60), 'b', 2, 1, 2);
    EXPECT_EQ(seen(get(0, at(20, 60), 2)), 'b');
    put(0, at(40, 20), 'c', 3, 1, 2);
    const auto local = world_.get<ConstLocalRange>(1, op::GetConst{at(0, 100), there_});
    std::string all(reinterpret_cast<const char*>(local.pointer()), 100);
    EXPECT_EQ(all, std::string(20, 'a') + std::string(20, 'b') + std::string(20, 'c') + std::string(20, 'b') +
                       std::string(20, 'a'));
    EXPECT_EQ(seen(get(1, at(0, 100), 1)), 'a') << "all of it, from five places";
    const Ticket plain = put(1, at(0, 100), 'd', {});
    EXPECT_FALSE(world_.ended(plain));
    EXPECT_EQ(seen(get(1, at(40, 20), 3)), 'c');
    EXPECT_TRUE(world_.ended(plain));
    EXPECT_EQ(seen(get(0, at(0, 100), {})), 'd');
    // Two versions of one tag could not be told apart.
    put(0, at(0, 8), 'x', 1, 1, 2);
    const Ticket same = put(0, at(0, 8), 'y', 1, 1, 2);
    EXPECT_FALSE(world_.ended(same));
    get(0, at(0, 8), 1);
    EXPECT_TRUE(world_.ended(same));
}

TEST_F(MemoryReadersTest, WhatIsReadOfAnEarlierVersionIsNotOverwritten) {
    world_.reserve_versions(data_, 2);
    put(0, at(0, 8), 'a', 1, 1);
    put(0, at(0, 8), 'b', 2, 1, 1);
    // Two get the earlier one; the first is counted, and the second's transfer is still under way.
    const Ticket first = world_.start(1, op::GetConst{at(0, 8), there_, Tag{1}}, 7);
    while (world_[1].transfers.empty()) world_.step(0);
    const Ticket next = put(0, at(0, 8), 'c', 3, 1, 1);
    world_.run();
    EXPECT_EQ(seen(first), 'a');
    EXPECT_TRUE(world_.ended(next));
    EXPECT_EQ(seen(get(1, at(0, 8), 2, 7)), 'b');
    EXPECT_EQ(seen(get(1, at(0, 8), 3, 7)), 'c');
}

TEST_F(MemoryReadersTest, AVersionThatCannotBePutLeavesTheEarlierOneWhole) {
    world_.reserve_versions(data_, 2);
    put(0, at(0, 8), 'a', 1, 1);
    world_.fail_transfers = true;
    EXPECT_THAT(error(put(0, at(0, 8), 'b', 2, 1, 1)), HasSubstr("the cable is out"));
    world_.fail_transfers = false;
    EXPECT_EQ(seen(get(1, at(0, 8), 1)), 'a');
    EXPECT_EQ(error(put(0, at(0, 8), 'b', 2, 1, 1)), "");
    EXPECT_EQ(seen(get(1, at(0, 8), 2)), 'b');
}

/// Who has said that it will read holds nobody when it dies, whatever it has read.
TEST_F(MemoryReadersTest, WhoRegisteredAndDiesBeforeItsFirstReadHoldsNobody) {
    world_.reserve_versions(data_, 3);
    for (const ClientId client : {7u, 8u}) world_[1].node.caching().register_reader(client, at(40, 20), true);
    put(0, at(40, 20), 'a', 1, 2);
    put(0, at(40, 20), 'b', 2, 2, 2);
    EXPECT_EQ(seen(get(1, at(40, 20), 1, 8)), 'a');
    const Ticket waits = put(0, at(40, 20), 'c', 3, 2);
    EXPECT_FALSE(world_.ended(waits));
    world_.drop_client(1, 7, true);
    world_.run();
    EXPECT_THAT(error(waits), HasSubstr("1 client(s) that were to read it have died"));
    const Ticket again = put(0, at(40, 20), 'c', 3, 1);
    EXPECT_FALSE(world_.ended(again)) << "the other has still to read one";
    EXPECT_EQ(seen(get(1, at(40, 20), 2, 8)), 'b');
    EXPECT_EQ(error(again), "");
    EXPECT_EQ(seen(get(1, at(40, 20), 3, 8)), 'c');
    // Who is not registered any more is not told of.
    world_[1].node.caching().register_reader(8, at(40, 20), false);
    put(0, at(40, 20), 'd', 4, 1);
    world_.drop_client(1, 8, true);
    world_.run();
    const Ticket held = put(0, at(40, 20), 'e', 5);
    EXPECT_FALSE(world_.ended(held));
    get(0, at(40, 20), 4);
    EXPECT_EQ(error(held), "");
    EXPECT_TRUE(world_.idle());
}

TEST_F(MemoryReadersTest, WhoDiesWhileThePutThatCountsOnItIsMadeIsNotWaitedFor) {
    for (const ClientId client : {7u, 8u}) world_[1].node.caching().register_reader(client, at(0, 8), true);
    const auto own = world_.get<MutableLocalRange>(0, op::Allocate{8, here_});
    world_.start(0, op::Put{own, at(0, 8), Tag{1}, true, 3});
    ASSERT_EQ(world_[0].transfers.size(), 1U) << "granted, and not written yet";
    for (const ClientId client : {7u, 8u}) world_.drop_client(1, client, true);
    while (world_.steps() > 1) world_.step(0);
    world_.run();
    EXPECT_THAT(error(put(0, at(0, 8), 'b', 2, 1)), HasSubstr("2 client(s) that were to read it have died"));
    const Ticket next = put(0, at(0, 8), 'b', 2, 1);
    EXPECT_FALSE(world_.ended(next)) << "one is alive";
    get(1, at(0, 8), 1, 9);
    EXPECT_EQ(error(next), "");
}

TEST_F(MemoryReadersTest, PutsThatWaitEndWithTheirClient) {
    put(0, at(0, 4), 'a', 1, 1);
    const Ticket waits = put(0, at(0, 4), 'b', 2, 1, 0, 7);
    world_.drop_client(0, 7);
    world_.run();
    EXPECT_THAT(error(waits), HasSubstr("its client has left"));
    EXPECT_EQ(seen(get(1, at(0, 4), 1)), 'a');
    EXPECT_EQ(seen(get(1, at(0, 4), {})), 'a');
    EXPECT_TRUE(world_.idle());
}

TEST_F(MemoryReadersTest, FreeingEndsWhoWaits) {
    world_.reserve_versions(data_, 3);
    const uint64_t room = world_[0].node.atlas().free_bytes(segment_)[0];
    put(0, at(0, 4), 'a', 1, 1);
    put(0, at(0, 4), 'b', 2, 1, 1);
    const Ticket waits = put(0, at(0, 4), 'c', 3);
    world_.free(data_);
    world_.run();
    EXPECT_THAT(error(waits), HasSubstr("its allocation was freed meanwhile"));
    EXPECT_EQ(world_[0].node.atlas().free_bytes(segment_)[0], room + 150) << "all versions";
    EXPECT_TRUE(world_.idle());
}

TEST_F(MemoryReadersTest, VersionsAreInTheSegmentOrRefused) {
    EXPECT_THAT([&] { world_.reserve_versions(data_, 9); },
                ThrowsMessage<MemoryError>(HasSubstr("8 version(s) more of allocation")));
    EXPECT_THAT([&] { world_.reserve_versions(data_, 70'000); }, ThrowsMessage<Error>(HasSubstr("65536")));
    EXPECT_EQ(world_[0].node.atlas().versions(data_), 1U);
    world_.reserve_versions(data_, 8);
    EXPECT_EQ(world_[1].node.atlas().free_bytes(segment_)[1], 0U);
}

TEST_F(MemoryReadersTest, ARankThatGoesMayHaveBeenAReader) {
    put(0, at(0, 4), 'a', 1, 1);
    const Ticket waits = put(0, at(0, 4), 'b', 2);
    EXPECT_FALSE(world_.ended(waits));
    world_.lose(1);
    EXPECT_THAT(error(waits), HasSubstr("a rank is gone, and perhaps with it"));
    EXPECT_THAT(error(put(0, at(0, 4), 'c', 2)), HasSubstr("a rank is gone"));
    EXPECT_EQ(seen(get(0, at(0, 4), 1)), 'a');
    EXPECT_EQ(error(put(0, at(0, 4), 'd', 2)), "");
}

TEST_F(MemoryReadersTest, APutThatFailsIsReadByNobody) {
    world_.fail_transfers = true;
    EXPECT_THAT(error(put(0, at(0, 4), 'a', 1, 3)), HasSubstr("the cable is out"));
    world_.fail_transfers = false;
    EXPECT_TRUE(world_.ended(put(0, at(0, 4), 'b', 1)));
}

class MemoryReadersMisuseTest : public testing::Test {
  protected:
    Server server_;
    Client client_{server_};
    DataId data_ = client_.allocate(8, client_.create_segment(8));
    CacheId cache_ = client_.create_cache(64);
    GlobalRange all_{data_, {0, 8}};
};

TEST_F(MemoryReadersMisuseTest, IsRefusedAndChangesNothing) {
    const MutableLocalRange own = client_.allocate_local(8, cache_);
    const auto refused = [&](const op::Put& put, const char* why) {
        EXPECT_THAT([&] { (void)client_.execute_sync(put); }, ThrowsMessage<Error>(HasSubstr(why)));
    };
    refused({own, all_, {}, false, 1}, "needs a tag, by which they are counted");
    refused({own, all_, Tag{1}, false, 1, 1}, "1 version(s) more of allocation");
    refused({own, all_, Tag{1}, false, 1, UINT32_MAX}, "at once are more than 65536");
    EXPECT_THAT(
        [&] {
            client_.register_reader({data_, {4, 5}});
        },
        ThrowsMessage<MemoryError>(HasSubstr("not all in allocation")));
    client_.put_and_set_tag(own, all_, 1, 1);
    client_.release(client_.get_const(all_, cache_, 1));
    client_.put_and_release_and_set_tag(own, all_, 2, 1);
    EXPECT_THAT([&] { client_.release(own); }, ThrowsMessage<MemoryError>(HasSubstr("released")));
}

/// A bunch in which another operation fails does not wait for readers.
TEST_F(MemoryReadersMisuseTest, ABunchGivesUp) {
    client_.put_and_release_and_set_tag(client_.allocate_local(8, cache_), all_, 1, 1);
    const MutableLocalRange own = client_.allocate_local(8, cache_);
    std::string error;
    client_.execute_bunch(
        {op::Put{own, all_, Tag{2}}, op::Allocate{65, cache_}}, [](const auto&) { ADD_FAILURE(); },
        [&](const BunchError& failed) { error = failed.what(); });
    EXPECT_THAT(error, HasSubstr("never fit"));
    EXPECT_THAT(error, HasSubstr("another operation of its bunch has failed"));
    client_.release(client_.get_const(all_, cache_, 1));
    client_.put(own, all_);
}

/// A pipeline without a barrier: a writer, and readers that are each as slow as they are.
TEST(MemoryReadersRanksTest, AWriterIsNeverTooFastForItsReaders) {
    constexpr memory::Rank kRanks = 3;
    constexpr uint64_t kVersions = 60;
    for (const uint32_t retain : {0u, 1u, 5u}) {
        TemporaryFolder folder;
        std::atomic<int> wrong{0};
        std::vector<std::thread> threads;
        for (memory::Rank rank = 0; rank < kRanks; ++rank)
            threads.emplace_back([&, rank] {
                Server server({rank, kRanks, folder.path(), 30});
                Client client(server);
                Collective collective(server);
                const DataId data = collective.allocate(1000, collective.create_segment(9000));
                const CacheId cache = client.create_cache(8000);
                const GlobalRange all{data, {0, 1000}};
                for (uint64_t version = 1; version <= kVersions; ++version) {
                    if (rank == 0) {
                        const MutableLocalRange own = client.allocate_local(1000, cache);
                        std::memset(own.pointer(), static_cast<int>(version), 1000);
                        client.put_and_release_and_set_tag(own, all, version, kRanks - 1, retain);
                    } else {
                        const ConstLocalRange seen = client.get_const(all, cache, version);
                        for (uint64_t i = 0; i < 1000; ++i)
                            wrong += seen.pointer()[i] == static_cast<std::byte>(version) ? 0 : 1;
                        client.release(seen);
                    }
                }
                collective.barrier();
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(wrong, 0) << retain;
    }
}

}  // namespace
}  // namespace heddle::test
