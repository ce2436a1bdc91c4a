// A writer whose puts retain up to three versions, readers that are each as fast as they are and die when
// they like, with messages and transfers in any order that the channels allow: who gets a version gets that
// one, whole, and nobody waits for ever.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "support/memory_world.hpp"
#include "support/seeds.hpp"

namespace heddle::memory {
namespace {

using namespace test;

constexpr uint64_t kBytes = 60;
constexpr uint32_t kVersions = 12, kMostRetained = 3;

struct Flow {
    explicit Flow(uint64_t seed) : random(seed), world(static_cast<memory::Rank>(1 + seed % 3)) {
        std::vector<uint64_t> parts(world.size(), (kMostRetained + 1) * kBytes);
        data = world.allocate(kBytes, world.segment(parts, seed % 2 == 0));
        world.reserve_versions(data, kMostRetained + 1);
        for (memory::Rank rank = 0; rank < world.size(); ++rank)
            caches.push_back(world.cache(rank, 4 * kBytes));
        const uint64_t count = 1 + below(4);
        for (uint64_t i = 0; i < count; ++i)
            readers.push_back({.rank = any_rank(), .client = static_cast<ClientId>(10 + i)});
        for (Reader& reader : readers)
            world[reader.rank].node.caching().register_reader(reader.client, all(), true);
        living = static_cast<uint32_t>(count);
        deaths_left = below(3);
    }

    struct Reader {
        memory::Rank rank;
        ClientId client;
        uint32_t next = 1;
        Ticket ticket = 0;
        bool dead = false;
    };

    uint64_t below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random); }
    memory::Rank any_rank() { return static_cast<memory::Rank>(below(world.size())); }
    GlobalRange all() const { return {data, {0, kBytes}}; }

    void write() {
        if (put != 0 || version > kVersions) return;
        const auto local = world.start(0, op::Allocate{kBytes, caches[0]});
        const auto* const own = std::get_if<OperationResult>(&world.outcome(local));
        if (own == nullptr) return;  // the cache is full for now
        const auto& to = std::get<MutableLocalRange>(*own);
        std::memset(to.pointer(), static_cast<int>(version), kBytes);
        put = world.start(0, op::Put{to, all(), Tag{version}, true, living,
                                     static_cast<uint32_t>(below(kMostRetained + 1))});
    }
    void end_write() {
        if (put == 0 || !world.ended(put)) return;
        if (const auto* error = std::get_if<MemoryError>(&world.outcome(put))) {
            const std::string text = error->what();
            const size_t at = text.find(" client(s)");
            ASSERT_NE(at, std::string::npos) << text;
            unsigned died = 0;
            ASSERT_EQ(std::sscanf(text.c_str() + text.rfind(' ', at - 1), "%u", &died), 1);
            ASSERT_LE(died, living);
            living -= died;
        } else {
            ++version;
        }
        put = 0;
    }

    void read(Reader& reader) {
        if (reader.dead || reader.ticket != 0 || reader.next > kVersions) return;
        const CacheId cache = caches[reader.rank];
        reader.ticket =
            below(2) == 0
                ? world.start(reader.rank, op::GetConst{all(), cache, Tag{reader.next}}, reader.client)
                : world.start(reader.rank, op::GetMutable{all(), cache, Tag{reader.next}, below(2) == 0},
                              reader.client);
    }
    void end_read(Reader& reader) {
        if (reader.dead || reader.ticket == 0 || !world.ended(reader.ticket)) return;
        const MemoryWorld::Outcome outcome = world.outcome(reader.ticket);
        reader.ticket = 0;
        if (std::holds_alternative<MemoryError>(outcome)) return;  // the cache is full for now
        const auto& result = std::get<OperationResult>(outcome);
        const LocalRange local = std::holds_alternative<ConstLocalRange>(result)
                                     ? static_cast<LocalRange>(std::get<ConstLocalRange>(result))
                                     : static_cast<LocalRange>(std::get<MutableLocalRange>(result));
        for (uint64_t i = 0; i < kBytes; ++i)
            ASSERT_EQ(static_cast<uint32_t>(local.base[local.range.offset + i]), reader.next) << i;
        ++reader.next;
        world.start(reader.rank, op::Release{local}, reader.client);
    }
    /// Without a tag: the newest there was, or one that was put meanwhile.
    void glance() {
        const memory::Rank rank = any_rank();
        const uint32_t before = version - 1;
        const Ticket ticket = world.start(rank, op::GetConst{all(), caches[rank]}, 5);
        glances.push_back({rank, ticket, before});
    }
    void end_glances() {
        std::erase_if(glances, [&](const auto& one) {
            const auto& [rank, ticket, before] = one;
            if (!world.ended(ticket)) return false;
            if (const auto* result = std::get_if<OperationResult>(&world.outcome(ticket))) {
                const auto& local = std::get<ConstLocalRange>(*result);
                const auto first = static_cast<uint32_t>(local.pointer()[0]);
                EXPECT_GE(first, before);
                EXPECT_LE(first, version);
                for (uint64_t i = 0; i < kBytes; ++i)
                    EXPECT_EQ(static_cast<uint32_t>(local.pointer()[i]), first) << "torn at " << i;
                world.start(rank, op::Release{local}, 5);
            }
            return true;
        });
    }
    void let_die(Reader& reader) {
        if (reader.dead || deaths_left == 0) return;
        --deaths_left;
        reader.dead = true;
        world.drop_client(reader.rank, reader.client, true);
    }
    void collect() {
        end_write();
        for (Reader& reader : readers) end_read(reader);
        end_glances();
    }
    [[nodiscard]] std::string told() const {
        std::string text = "somebody waits for ever: version " + std::to_string(version) + " of rank 0, " +
                           std::to_string(living) + " readers;";
        for (const Reader& reader : readers)
            text += " rank " + std::to_string(reader.rank) + (reader.dead ? " dead" : " at ") +
                    std::to_string(reader.next) + (reader.ticket != 0 ? " waits" : "");
        return text;
    }
    [[nodiscard]] bool all_done() const {
        return put == 0 && version > kVersions && std::ranges::all_of(readers, [](const Reader& reader) {
                   return reader.dead || reader.next > kVersions;
               });
    }

    std::mt19937_64 random;
    MemoryWorld world;
    DataId data;
    std::vector<CacheId> caches;
    std::vector<Reader> readers;
    std::vector<std::tuple<memory::Rank, Ticket, uint32_t>> glances;
    uint32_t version = 1, living = 0;
    Ticket put = 0;
    uint64_t deaths_left = 0;
};

TEST(VersionsTest, EachReaderGetsEachVersionAndTheDeadHoldNobody) {
    const auto [first, count] = seeds(400);
    for (uint64_t seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(seed);
        Flow flow(seed);
        for (int i = 0; i < 20'000 && !flow.all_done(); ++i) {
            const uint64_t what = flow.below(20);
            if (what == 0)
                flow.write();
            else if (what < 4)
                flow.read(flow.readers[flow.below(flow.readers.size())]);
            else if (what == 4)
                flow.glance();
            else if (what == 5 && flow.below(10) == 0)
                flow.let_die(flow.readers[flow.below(flow.readers.size())]);
            else if (flow.world.steps() > 0)
                flow.world.step(flow.below(flow.world.steps()));
            flow.collect();
            if (testing::Test::HasFailure()) return;
        }
        EXPECT_TRUE(flow.all_done()) << flow.told();
        flow.world.run();
        flow.collect();
        flow.world.run();
        EXPECT_TRUE(flow.world.idle());
        if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace heddle::memory
