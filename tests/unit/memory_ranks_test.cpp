// Several servers that make one memory: here in one process, each with threads of its own.
#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "heddle/memory.hpp"
#include "support/on_ranks.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::HasSubstr;
using testing::ThrowsMessage;

class MemoryRanksTest : public testing::TestWithParam<std::tuple<const char*, memory::Rank>> {
  protected:
    static memory::Rank ranks() { return std::get<1>(GetParam()); }
    SegmentDescription kind() const {
        SegmentDescription description{std::get<0>(GetParam()), {}};
        if (description.kind == "file") description.options["path"] = folder_.path();
        return description;
    }
    TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, MemoryRanksTest,
                         testing::Combine(testing::Values("shm", "file"), testing::Values(1u, 2u, 3u, 4u)),
                         [](const auto& which) {
                             return std::string(std::get<0>(which.param)) + "_" +
                                    std::to_string(std::get<1>(which.param));
                         });

TEST_P(MemoryRanksTest, WhatOneRankPutsAllGet) {
    std::atomic<int> wrong{0};
    on_ranks(ranks(), [&](Server& server, Client& client, Collective& collective) {
        const SegmentId segment = collective.create_segment(101, kind());
        const CacheId cache = client.create_cache(101);
        for (int round = 0; round < 20; ++round) {
            const DataId data =
                collective.allocate(static_cast<uint64_t>(81 + round), segment,
                                    {round % 2 == 0 ? "equally_distributed" : "prefix_filled"});
            const uint64_t size = static_cast<uint64_t>(81 + round);
            if (static_cast<memory::Rank>(round) % server.ranks() == server.rank()) {
                const MutableLocalRange own = client.allocate_local(size, cache);
                std::memset(own.pointer(), round + 1, size);
                client.put_and_release(own, {data, {0, size}});
            }
            collective.barrier();
            const ConstLocalRange local = client.get_const({data, {0, size}}, cache);
            for (uint64_t i = 0; i < size; ++i)
                wrong += local.pointer()[i] != static_cast<std::byte>(round + 1) ? 1 : 0;
            client.release(local);
            collective.barrier();
            collective.free(data);
        }
        collective.delete_segment(segment);
        client.delete_cache(cache);
    });
    EXPECT_EQ(wrong, 0);
}

/// All ranks add to all cells; none of it is lost, and nobody sees cells of two moments.
TEST_P(MemoryRanksTest, ExclusiveRangesAddUp) {
    constexpr uint64_t kCells = 11, kSize = kCells * 8;
    constexpr int kRounds = 60;
    std::atomic<int> torn{0};
    uint64_t total = 0;
    on_ranks(ranks(), [&](Server& server, Client& client, Collective& collective) {
        const DataId data = collective.allocate(kSize, collective.create_segment(kSize, kind()));
        const CacheId cache = client.create_cache(2 * kSize);
        const GlobalRange all{data, {0, kSize}};
        std::mt19937 random(server.rank());
        for (int round = 0; round < kRounds; ++round) {
            const MutableLocalRange own = client.get_exclusive(all, cache);
            uint64_t cells[kCells];
            std::memcpy(cells, own.pointer(), kSize);
            for (uint64_t& cell : cells) ++cell;
            std::memcpy(own.pointer(), cells, kSize);
            client.put_and_release(own, all);
            if (random() % 2 == 0) {
                const ConstLocalRange seen = client.get_const(all, cache);
                std::memcpy(cells, seen.pointer(), kSize);
                for (const uint64_t cell : cells) torn += cell != cells[0] ? 1 : 0;
                client.release(seen);
            }
        }
        collective.barrier();
        const ConstLocalRange seen = client.get_const(all, cache);
        if (server.rank() == 0) std::memcpy(&total, seen.pointer(), 8);
        client.release(seen);
    });
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(total, uint64_t{kRounds} * ranks());
}

/// A ring: each rank waits for what the one before it has put, by a tag.
TEST_P(MemoryRanksTest, TagsOrderRanks) {
    std::atomic<uint64_t> sum{0};
    on_ranks(ranks(), [&](Server& server, Client& client, Collective& collective) {
        const DataId data = collective.allocate(8, collective.create_segment(8, kind()));
        const CacheId cache = client.create_cache(16);
        const GlobalRange all{data, {0, 8}};
        for (Tag turn = server.rank(); turn < 10; turn += server.ranks()) {
            uint64_t value = 0;
            if (turn > 0) {
                const auto before =
                    std::get<ConstLocalRange>(client.execute_sync(op::GetConst{all, cache, turn - 1}));
                std::memcpy(&value, before.pointer(), 8);
                client.release(before);
            }
            value += turn;
            const MutableLocalRange own = client.allocate_local(8, cache);
            std::memcpy(own.pointer(), &value, 8);
            (void)client.execute_sync(op::Put{own, all, turn, true});
            if (turn == 9) sum = value;
        }
    });
    EXPECT_EQ(sum, 45U);
}

TEST_P(MemoryRanksTest, AnErrorIsEverybodys) {
    std::atomic<int> told{0};
    on_ranks(ranks(), [&](Server&, Client& client, Collective& collective) {
        EXPECT_THAT(
            [&] {
                (void)collective.create_segment(8, {"tape", {}});
            },
            ThrowsMessage<Error>(HasSubstr("no segments of kind \"tape\"")));
        EXPECT_THAT(
            [&] {
                (void)client.create_segment(8, {"file", {{"path", "/no/such"}}});
            },
            ThrowsMessage<Error>(HasSubstr("No such file")));
        const SegmentId segment = collective.create_segment(8, kind());
        try {
            (void)collective.allocate(9, segment);
        } catch (const MemoryError& error) {
            told += error.memory_code() == MemoryErrorCode::kSegmentFull ? 1 : 0;
        }
        EXPECT_NO_THROW((void)collective.allocate(8, segment));
    });
    EXPECT_EQ(told, static_cast<int>(ranks()));
}

/// What the program's own code throws, of any type, in one rank.
TEST_P(MemoryRanksTest, AnErrorOfADistributionIsEverybodys) {
    std::atomic<int> told{0};
    on_ranks(ranks(), [&](Server&, Client&, Collective& collective) {
        const SegmentId segment = collective.create_segment(8, kind());
        const auto fails = [](uint64_t, std::span<const uint64_t>) -> std::vector<Share> {
            throw std::runtime_error("there are no shares today");
        };
        try {
            (void)collective.allocate(8, segment, {"none", fails});
        } catch (const std::exception& error) {
            told += std::string(error.what()).find("no shares today") != std::string::npos ? 1 : 0;
        }
        collective.barrier();
        EXPECT_NO_THROW((void)collective.allocate(8, segment));
    });
    EXPECT_EQ(told, static_cast<int>(ranks()));
}

TEST_P(MemoryRanksTest, BroadcastsAreOfAnySize) {
    std::atomic<int> wrong{0};
    on_ranks(ranks(), [&](Server& server, Client&, Collective& collective) {
        for (const size_t size : {size_t{0}, size_t{1}, size_t{16'383}, size_t{16'384}, size_t{16'385},
                                  size_t{65'536}, size_t{300'000}})
            for (memory::Rank root = 0; root < server.ranks(); ++root) {
                std::vector<std::byte> expected(size), own;
                for (size_t i = 0; i < size; ++i) expected[i] = static_cast<std::byte>(i * 7 + root);
                if (server.rank() == root) own = expected;
                wrong += collective.broadcast(own, root) == expected ? 0 : 1;
            }
    });
    EXPECT_EQ(wrong, 0);
}

/// So many shares that no packet holds them: all ranks hear of it, none has it, and the next change is made.
/// From where the bytes lie to where some of them do, and some are another rank's.
TEST_P(MemoryRanksTest, APutToAPlaceThatOverlapsItsSource) {
    if (ranks() < 2) GTEST_SKIP() << "one rank's part is one piece";
    constexpr uint64_t kPart = 100;
    std::atomic<int> wrong{0};
    on_ranks(ranks(), [&](Server& server, Client& client, Collective& collective) {
        const uint64_t size = kPart * server.ranks();
        const SegmentId segment = collective.create_segment(size, kind());
        const DataId data = collective.allocate(size, segment);
        const CacheId cache = client.create_cache(size);
        if (server.rank() == 0) {
            const MutableLocalRange own = client.allocate_local(kPart, cache);
            for (uint64_t i = 0; i < kPart; ++i) own.pointer()[i] = static_cast<std::byte>(i);
            client.put_and_release(own, {data, {0, kPart}});
            const auto there = std::get<MutableLocalRange>(
                client.execute_sync(op::GetMutable{{data, {0, kPart}}, cache, {}, true}));
            client.put_and_release(there, {data, {kPart / 2, kPart}});
        }
        collective.barrier();
        const ConstLocalRange local = client.get_const({data, {0, kPart + kPart / 2}}, cache);
        for (uint64_t i = 0; i < local.range.size; ++i)
            wrong += local.pointer()[i] != static_cast<std::byte>(i < kPart / 2 ? i : i - kPart / 2) ? 1 : 0;
        client.release(local);
        collective.barrier();
    });
    EXPECT_EQ(wrong, 0);
}

TEST_P(MemoryRanksTest, AChangeThatIsTooLongIsNobodys) {
    constexpr uint64_t kShares = 20'000;
    std::atomic<int> told{0};
    on_ranks(ranks(), [&](Server& server, Client&, Collective& collective) {
        const SegmentId segment = collective.create_segment(kShares, kind());
        const DataDescription cyclic{
            "cyclic", [&](uint64_t size, std::span<const uint64_t>) {
                std::vector<Share> shares;
                for (uint64_t i = 0; i < size; ++i)
                    shares.push_back({static_cast<memory::Rank>(i % server.ranks()), 1});
                return shares;
            }};
        for (int again = 0; again < 3; ++again) {
            try {
                const DataId data = collective.allocate(kShares, segment, cyclic);
                EXPECT_EQ(server.ranks(), 1u);
                collective.free(data);
                ++told;
            } catch (const Error& error) {
                EXPECT_THAT(error.what(), HasSubstr("longer than"));
                ++told;
            }
        }
        // All of its room is there.
        collective.free(collective.allocate(kShares, segment));
    });
    EXPECT_EQ(told, static_cast<int>(3 * ranks()));
}

TEST(MemoryMeshTest, ARankThatNeverComesIsNamed) {
    TemporaryFolder folder;
    EXPECT_THAT(
        [&] {
            Server({1, 2, folder.path(), 0.05});
        },
        ThrowsMessage<Error>(HasSubstr("rank 0 did not come to " + folder.path() + " in time")));
    EXPECT_THAT(
        [&] {
            Server({0, 3, folder.path(), 0.05});
        },
        ThrowsMessage<Error>(HasSubstr("2 rank(s) above 0")));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(MemoryMeshTest, WhatCannotBeAGroupIsRefused) {
    TemporaryFolder folder;
    EXPECT_THAT([&] { Server({2, 2, folder.path(), 1}); }, ThrowsMessage<Error>(HasSubstr("no rank 2 of 2")));
    EXPECT_THAT(
        [&] {
            Server({0, 2, "/no/such/folder", 1});
        },
        ThrowsMessage<Error>(HasSubstr("No such file")));
    EXPECT_THAT(
        [&] {
            Server({0, 2, std::string(200, 'x'), 1});
        },
        ThrowsMessage<Error>(HasSubstr("is too long")));
    EXPECT_THAT([&] { Server({0, 2, "", 1}); }, ThrowsMessage<Error>(HasSubstr("in a folder: name one")));
    EXPECT_THAT(
        [&] {
            Server({0, 4'000'000'000, folder.path(), 1});
        },
        ThrowsMessage<Error>(HasSubstr("there can be 65536 ranks")));
    std::ofstream(folder.path() + "/rank-0") << "precious";
    EXPECT_THAT(
        [&] {
            Server({0, 2, folder.path(), 1});
        },
        ThrowsMessage<Error>(HasSubstr("or another program")));
    EXPECT_TRUE(std::filesystem::remove(folder.path() + "/rank-0")) << "it is not ours";
    std::thread other([&] { EXPECT_THROW(Server({1, 3, folder.path(), 0.5}), Error); });
    EXPECT_THAT(
        [&] {
            Server({0, 2, folder.path(), 5});
        },
        ThrowsMessage<Error>(HasSubstr("a rank 1 of 3 came, where ranks 1 to 1 of 2 are awaited")));
    other.join();
}

/// What lies on a rank that goes fails clearly, and the rest goes on.
TEST(MemoryMeshTest, ARankThatGoesIsTold) {
    TemporaryFolder folder;
    std::thread second([&] {
        Server server({1, 3, folder.path(), 30});
        Client client(server);
        Collective collective(server);
        const DataId data = collective.allocate(30, collective.create_segment(30));
        (void)client.get_exclusive({data, {0, 30}}, client.create_cache(30));
        collective.barrier();
    });
    std::atomic<int> lost{0}, got{0}, told{0};
    const auto stay = [&](memory::Rank rank) {
        Server server({rank, 3, folder.path(), 30});
        Client client(server);
        Collective collective(server);
        const DataId data = collective.allocate(30, collective.create_segment(30));
        const CacheId cache = client.create_cache(30);
        collective.barrier();
        // It held all of it: who waited for that goes on when it is gone.
        client.release(client.get_const({data, {rank * 10, 10}}, cache));
        ++got;
        const MutableLocalRange own = client.allocate_local(3, cache);
        for (bool well = true; well;) {
            try {
                client.put(own, {data, {9, 3}});
            } catch (const MemoryError& error) {
                EXPECT_THAT(error.what(), HasSubstr("a rank on which a part of it lies is gone"));
                well = false;
            }
        }
        ++lost;
        EXPECT_THAT([&] { collective.barrier(); }, ThrowsMessage<Error>(HasSubstr("rank 1 is gone")));
        // Until the other one has been told, too: it needs rank 0 for that.
        ++told;
        while (told < 2) std::this_thread::yield();
    };
    std::thread first([&] { stay(0); });
    std::thread third([&] { stay(2); });
    second.join();
    first.join();
    third.join();
    EXPECT_EQ(got, 2);
    EXPECT_EQ(lost, 2);
}

}  // namespace
}  // namespace heddle::test
