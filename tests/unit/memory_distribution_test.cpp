// Distributions that a program brings itself.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <numeric>

#include "heddle/memory.hpp"
#include "support/on_ranks.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Blocks of seven bytes in turn.
std::vector<Share> cyclic(uint64_t size, std::span<const uint64_t> free_bytes) {
    std::vector<Share> shares;
    for (uint64_t offset = 0; offset < size; offset += 7)
        shares.push_back({static_cast<memory::Rank>(shares.size() % free_bytes.size()),
                          std::min<uint64_t>(7, size - offset)});
    return shares;
}

class Registered {
  public:
    Registered(std::string name, Distribution distribution) : name_(std::move(name)) {
        register_distribution(name_, std::move(distribution));
    }
    ~Registered() { unregister_distribution(name_); }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;

  private:
    std::string name_;
};

/// Only the rank that allocates knows the distribution; all find the data.
TEST(MemoryDistributionTest, OneRankDescribesAndAllFind) {
    for (const memory::Rank ranks : {1u, 2u, 3u}) {
        std::atomic<int> wrong{0}, calls{0};
        const auto counted = [&](uint64_t size, std::span<const uint64_t> free_bytes) {
            ++calls;
            return cyclic(size, free_bytes);
        };
        on_ranks(ranks, [&](Server& server, Client& client, Collective& collective) {
            const SegmentId segment = collective.create_segment(300);
            DataDescription description;
            if (server.rank() == 0) description.distribute = counted;
            const DataId data = collective.allocate(100, segment, description);
            std::string all(100, ' ');
            for (size_t i = 0; i < 100; ++i) all[i] = static_cast<char>(i);
            const CacheId cache = client.create_cache(200);
            if (server.rank() == ranks - 1) {
                const MutableLocalRange own = client.allocate_local(100, cache);
                std::memcpy(own.pointer(), all.data(), 100);
                client.put_and_release(own, {data, {0, 100}});
            }
            collective.barrier();
            for (uint64_t offset = 0; offset + 30 <= 100; offset += 5) {
                const ConstLocalRange seen = client.get_const({data, {offset, 30}}, cache);
                wrong += std::memcmp(seen.pointer(), all.data() + offset, 30) == 0 ? 0 : 1;
                client.release(seen);
            }
            // Bytes 7 to 13 are the second rank's.
            const auto direct =
                std::get<ConstLocalRange>(client.execute_sync(op::GetConst{{data, {7, 7}}, cache, {}, true}));
            wrong += (direct.cache == CacheId{}) == (server.rank() == 1 % ranks) ? 0 : 1;
            client.release(direct);
            collective.barrier();
            collective.free(data);
            const std::vector<uint64_t> room = client.free_bytes(segment);
            wrong += std::accumulate(room.begin(), room.end(), uint64_t{0}) == 300 ? 0 : 1;
        });
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(calls, 1);
    }
}

class MemoryBadDistributionTest : public testing::Test {
  protected:
    DataId allocate(std::vector<Share> shares) {
        DataDescription description{"own", [&](uint64_t, std::span<const uint64_t>) { return shares; }};
        return client_.allocate(10, segment_, description);
    }
    Server server_;
    Client client_{server_};
    SegmentId segment_ = client_.create_segment(20);
};

TEST_F(MemoryBadDistributionTest, ByNameAsOftenAsOneLikes) {
    const Registered registered("all at once", [](uint64_t size, std::span<const uint64_t>) {
        return std::vector<Share>{{0, size}};
    });
    client_.free(client_.allocate(10, segment_, {"all at once"}));
    const DataId data = client_.allocate(20, segment_, {"all at once"});
    EXPECT_THAT(client_.free_bytes(segment_), ElementsAre(0));
    EXPECT_THAT([&] { (void)client_.allocate(1, segment_, {"all at once"}); },
                ThrowsMessage<MemoryError>(HasSubstr("has 0 bytes left, and 1 are asked for")));
    client_.free(data);
    EXPECT_THAT([] { register_distribution("all at once", cyclic); },
                ThrowsMessage<Error>(HasSubstr("choose another name")));
}

TEST_F(MemoryBadDistributionTest, NamesThatCannotBe) {
    EXPECT_THAT([&] { (void)client_.allocate(1, segment_, {"cyclic"}); },
                ThrowsMessage<Error>(HasSubstr("no distribution \"cyclic\": there are")));
    EXPECT_THAT([] { register_distribution("prefix_filled", cyclic); },
                ThrowsMessage<Error>(HasSubstr("already")));
    EXPECT_THAT([] { register_distribution("", cyclic); }, ThrowsMessage<Error>(HasSubstr("needs a name")));
    EXPECT_THAT([] { register_distribution("none", {}); }, ThrowsMessage<Error>(HasSubstr("no function")));
    for (const char* name : {"prefix_filled", "cyclic"})
        EXPECT_THAT([&] { unregister_distribution(name); },
                    ThrowsMessage<Error>(HasSubstr("nobody has registered")));
}

TEST_F(MemoryBadDistributionTest, SharesThatAreNotTheData) {
    const auto refused = [&](std::vector<Share> shares, const char* why) {
        EXPECT_THAT([&] { (void)allocate(shares); }, ThrowsMessage<Error>(HasSubstr(why)));
        EXPECT_THAT(client_.free_bytes(segment_), ElementsAre(20));
    };
    refused({}, "\"own\" places 0 of 10 bytes");
    refused({{0, 9}}, "\"own\" places 9 of 10 bytes");
    refused({{0, 6}, {0, 5}}, "places 5 bytes on rank 0 where 4 of 10 are left");
    refused({{0, static_cast<uint64_t>(-1)}}, "was that a negative number?");
    refused({{1, 10}}, "rank 1, and there are 1 ranks");
    EXPECT_THAT(
        [&] {
            (void)client_.allocate(10, segment_, {"own", [](uint64_t, auto) -> std::vector<Share> {
                                                      throw std::runtime_error("cannot say");
                                                  }});
        },
        ThrowsMessage<std::runtime_error>("cannot say"));
    EXPECT_NO_THROW((void)allocate({{0, 10}}));
    EXPECT_THAT(
        [&] {
            (void)client_.allocate(1, {99}, {"own", cyclic});
        },
        ThrowsMessage<MemoryError>(HasSubstr("no segment 99")));
}

/// What is taken between the choice of the shares and the allocation is seen when the function is called
/// again.
TEST(MemoryDistributionTest, CalledAgainWhereTheRoomIsGone) {
    TemporaryFolder folder;
    std::thread other([&] {
        Server server({1, 2, folder.path(), 30});
        Collective(server).barrier();
    });
    Server server({0, 2, folder.path(), 30});
    Client client(server);
    const SegmentId segment = client.create_segment(40);
    std::vector<uint64_t> seen;
    const auto first_with_room = [&](uint64_t size, std::span<const uint64_t> free_bytes) {
        seen.push_back(free_bytes[0]);
        if (seen.size() == 1) (void)client.allocate(8, segment, {"prefix_filled"});
        return std::vector<Share>{{free_bytes[0] >= size ? 0u : 1u, size}};
    };
    (void)client.allocate(15, segment, {"first with room", first_with_room});
    EXPECT_THAT(seen, ElementsAre(20, 12));
    EXPECT_THAT(client.free_bytes(segment), ElementsAre(12, 5));
    EXPECT_THAT(
        [&] {
            (void)client.allocate(10, segment, {"second", [](uint64_t size, auto) {
                                                    return std::vector<Share>{{1, size}};
                                                }});
        },
        ThrowsMessage<MemoryError>(HasSubstr("has 5 bytes left on rank 1, and the distribution \"second\"")));
    Collective(server).barrier();
    other.join();
}

}  // namespace
}  // namespace heddle::test
