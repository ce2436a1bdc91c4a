#include "memory/space.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "memory/atlas.hpp"

namespace heddle::memory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SpaceTest, AllOfItCanBeTakenAndNothingMore) {
    Space space(10);
    EXPECT_EQ(space.take(3), (Range{0, 3}));
    EXPECT_EQ(space.take(7), (Range{3, 7}));
    EXPECT_EQ(space.take(1), std::nullopt);
    EXPECT_EQ(space.take(0), (Range{0, 0}));
    EXPECT_EQ(space.free_bytes(), 0U);
}

TEST(SpaceTest, TheBestFitLeavesLargeHoles) {
    Space space(20);
    for (int i = 0; i < 20; ++i) (void)space.take(1);
    space.give_back({0, 8});
    space.give_back({10, 3});
    EXPECT_EQ(space.take(3), (Range{10, 3}));
    EXPECT_EQ(space.take(8), (Range{0, 8}));
}

TEST(SpaceTest, NeighbouringHolesBecomeOne) {
    Space space(9);
    (void)space.take(9);
    EXPECT_EQ(space.give_back({0, 3}), (Range{0, 3}));
    EXPECT_EQ(space.give_back({6, 3}), (Range{6, 3}));
    EXPECT_EQ(space.hole_from(6), (Range{6, 3}));
    EXPECT_EQ(space.hole_to(3), (Range{0, 3}));
    EXPECT_EQ(space.hole_to(6), std::nullopt);
    EXPECT_EQ(space.give_back({3, 3}), (Range{0, 9}));
}

TEST(SpaceTest, InPiecesItIsFullOnlyWhenNothingIsLeft) {
    Space space(10);
    (void)space.take(10);
    space.give_back({1, 2});
    space.give_back({5, 3});
    EXPECT_TRUE(space.take_in_pieces(6).empty());
    EXPECT_EQ(space.free_bytes(), 5U);
    EXPECT_THAT(space.take_in_pieces(4), ElementsAre(Range{1, 1}, Range{5, 3}));
    EXPECT_EQ(space.free_bytes(), 1U);
}

/// Every size on every number of ranks, down to the last byte: the prototype refused what was no multiple of
/// the number of ranks.
TEST(AtlasTest, EachSizeIsPlacedOnEachNumberOfRanks) {
    for (const char* name : {"equally_distributed", "prefix_filled"}) {
        const Distribution distribution = find_distribution(name);
        for (size_t ranks = 1; ranks <= 5; ++ranks) {
            for (uint64_t size = 0; size <= 64; ++size) {
                Atlas atlas;
                const std::vector<uint64_t> parts(ranks, (size + ranks - 1) / ranks);
                atlas.add_segment({1}, parts);
                atlas.allocate({2}, size, {1}, distribution);
                uint64_t offset = 0;
                for (const Piece& piece : atlas.pieces({{2}, {0, size}})) {
                    EXPECT_EQ(piece.global.range.offset, offset);
                    EXPECT_LE(piece.part_offset + piece.global.range.size, parts[piece.home]);
                    offset = piece.global.range.end();
                }
                EXPECT_EQ(offset, size) << name << " on " << ranks;
                atlas.free({2});
                atlas.remove_segment({1});
            }
        }
    }
}

TEST(AtlasTest, DistributionsFillWhatIsThere) {
    const uint64_t free_bytes[] = {10, 2, 10};
    const auto sizes = [](const std::vector<Share>& shares) {
        std::vector<std::pair<Rank, uint64_t>> all;
        for (const Share& share : shares) all.emplace_back(share.rank, share.size);
        return all;
    };
    using Pair = std::pair<Rank, uint64_t>;
    EXPECT_THAT(sizes(equally_distributed(9, free_bytes)), ElementsAre(Pair(0, 3), Pair(1, 2), Pair(2, 4)));
    EXPECT_THAT(sizes(equally_distributed(22, free_bytes)),
                ElementsAre(Pair(0, 10), Pair(1, 2), Pair(2, 10)));
    EXPECT_THAT(sizes(prefix_filled(11, free_bytes)), ElementsAre(Pair(0, 10), Pair(1, 1)));
    EXPECT_TRUE(prefix_filled(0, free_bytes).empty());
}

TEST(AtlasTest, SharesThatAreNotTheDataAreRefused) {
    Atlas atlas;
    atlas.add_segment({1}, {8, 8});
    const auto error = [&](std::vector<Share> shares) -> std::string {
        try {
            atlas.allocate(
                {2}, 10, {1}, [&](uint64_t, std::span<const uint64_t>) { return shares; }, "own");
            return "";
        } catch (const Error& refused) {
            return refused.what();
        }
    };
    EXPECT_THAT(error({}), HasSubstr("\"own\" places 0 of 10 bytes"));
    EXPECT_THAT(error({{0, 5}, {1, 4}}), HasSubstr("\"own\" places 9 of 10 bytes"));
    EXPECT_THAT(error({{0, 5}, {1, 6}}), HasSubstr("places 6 bytes on rank 1 where 5 of 10 are left"));
    EXPECT_THAT(error({{0, 5}, {1, uint64_t(-3)}, {0, 8}}), HasSubstr("was that a negative number?"));
    EXPECT_THAT(error({{0, 5}, {2, 5}}), HasSubstr("5 bytes on rank 2, and there are 2 ranks, from 0 on"));
    EXPECT_THAT(error({{0, 5}, {1, 1}, {0, 4}}),
                HasSubstr("has 8 bytes left on rank 0, and the distribution"));
    EXPECT_EQ(atlas.free_bytes({1}), (std::vector<uint64_t>{8, 8}));
    // In many pieces, some of them empty, and in any order.
    EXPECT_EQ(error({{1, 2}, {0, 3}, {1, 0}, {1, 4}, {0, 1}}), "");
    EXPECT_EQ(atlas.free_bytes({1}), (std::vector<uint64_t>{4, 2}));
    std::vector<std::pair<Rank, uint64_t>> homes;
    for (const Piece& piece : atlas.pieces({{2}, {0, 10}}))
        homes.emplace_back(piece.home, piece.global.range.size);
    using Pair = std::pair<Rank, uint64_t>;
    EXPECT_THAT(homes, ElementsAre(Pair(1, 2), Pair(0, 3), Pair(1, 4), Pair(0, 1)));
    atlas.free({2});
    EXPECT_EQ(atlas.free_bytes({1}), (std::vector<uint64_t>{8, 8}));
}

/// Allocations come and go in any order: what lies where never overlaps, and all is free again in the end.
TEST(AtlasTest, RandomAllocationsNeverOverlap) {
    std::mt19937 random(7);
    Atlas atlas;
    const std::vector<uint64_t> parts{100, 37, 0, 64};
    atlas.add_segment({1}, parts);
    std::map<uint64_t, uint64_t> sizes;
    for (uint64_t id = 1; id < 3000; ++id) {
        const uint64_t size = random() % 60;
        try {
            atlas.allocate({id}, size, {1}, random() % 2 == 0 ? equally_distributed : prefix_filled);
            sizes.emplace(id, size);
        } catch (const MemoryError& error) {
            EXPECT_EQ(error.memory_code(), MemoryErrorCode::kSegmentFull);
            uint64_t used = 0;
            for (const auto& one : sizes) used += one.second;
            EXPECT_GT(used + size, 201U);
            const auto gone = sizes.begin();
            atlas.free({gone->first});
            sizes.erase(gone);
        }
        std::vector<std::vector<bool>> taken{
            std::vector<bool>(100), std::vector<bool>(37), {}, std::vector<bool>(64)};
        for (const auto& one : sizes)
            for (const Piece& piece : atlas.pieces({{one.first}, {0, one.second}}))
                for (uint64_t i = 0; i < piece.global.range.size; ++i) {
                    EXPECT_FALSE(taken[piece.home].at(piece.part_offset + i));
                    taken[piece.home][piece.part_offset + i] = true;
                }
    }
    for (const auto& one : sizes) atlas.free({one.first});
    EXPECT_NO_THROW(atlas.allocate({9999}, 201, {1}, prefix_filled));
}

TEST(AtlasTest, WhatIsNotThereIsToldClearly) {
    Atlas atlas;
    atlas.add_segment({1}, {8, 8});
    atlas.allocate({2}, 10, {1}, prefix_filled);
    EXPECT_THAT(
        [&] {
            (void)atlas.pieces({{2}, {4, 7}});
        },
        ThrowsMessage<MemoryError>(
            HasSubstr("7 bytes from offset 4 on are not all in allocation 2, which has 10")));
    EXPECT_THAT(
        [&] {
            (void)atlas.pieces({{2}, {UINT64_MAX, 2}});
        },
        ThrowsMessage<MemoryError>(HasSubstr("not all")));
    EXPECT_THAT(
        [&] {
            (void)atlas.pieces({{3}, {0, 1}});
        },
        ThrowsMessage<MemoryError>(HasSubstr("no allocation 3")));
    EXPECT_THAT([&] { atlas.allocate({3}, 7, {1}, prefix_filled); },
                ThrowsMessage<MemoryError>(HasSubstr("segment 1 has 6 bytes left, and 7 are asked for")));
    EXPECT_THAT([&] { atlas.allocate({3}, 1, {4}, prefix_filled); },
                ThrowsMessage<MemoryError>(HasSubstr("no segment 4")));
    EXPECT_THAT([&] { atlas.remove_segment({1}); }, ThrowsMessage<Error>(HasSubstr("holds 1 allocation(s)")));
    EXPECT_THAT([] { (void)find_distribution("cyclic"); },
                ThrowsMessage<Error>(HasSubstr("there are equally_distributed, prefix_filled")));
}

}  // namespace
}  // namespace heddle::memory
