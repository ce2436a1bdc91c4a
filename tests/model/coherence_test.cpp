// Random operations of several clients on several ranks, with messages and transfers in any order that the
// channels allow: each copy shows what was in memory at one moment while it was asked for, nobody waits for
// ever, and nothing is left over.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "support/memory_world.hpp"
#include "support/seeds.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it

constexpr uint64_t kCells = 24;
constexpr uint64_t kCell = sizeof(uint32_t);
using Cells = std::vector<uint32_t>;

struct Play {
    explicit Play(uint64_t seed) : random(seed), world(static_cast<memory::Rank>(1 + seed % 4)) {
        std::vector<uint64_t> parts;
        for (memory::Rank rank = 0; rank < world.size(); ++rank) parts.push_back(kCells * kCell);
        const SegmentId segment = world.segment(parts, false);
        data = world.allocate(kCells * kCell, segment, seed % 3 == 0 ? prefix_filled : equally_distributed);
        for (memory::Rank rank = 0; rank < world.size(); ++rank)
            for (int i = 0; i < 2; ++i)
                caches.push_back({rank, world.cache(rank, (8 + below(kCells)) * kCell)});
        history.push_back(Cells(kCells, 0));
        readers = seed % 5 == 4;
    }

    uint64_t below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random); }
    GlobalRange any_range(uint64_t limit) {
        const uint64_t size = 1 + below(std::min(limit, kCells));
        return {data, {below(kCells - size + 1) * kCell, size * kCell}};
    }

    struct Asked {
        memory::Rank rank;
        Operation operation;
        size_t began;
        Cells written = {};
        ClientId client;
    };

    void ask(memory::Rank rank, const Operation& operation, ClientId client, Cells written = {}) {
        const Ticket ticket = world.start(rank, operation, client);
        asked.emplace(ticket, Asked{rank, operation, history.size() - 1, std::move(written), client});
    }

    void begin_one() {
        const auto [rank, cache] = caches[below(caches.size())];
        const auto client = static_cast<ClientId>(1 + below(2));
        switch (below(10)) {
            case 0:
            case 1:
            case 2:
            case 3:
                return ask(rank, op::GetConst{any_range(8), cache}, client);
            case 4:
                return ask(rank, op::GetMutable{any_range(8), cache}, client);
            case 5:
                return ask(rank, op::GetConst{any_range(8), cache, Tag{below(3)}}, client);
            case 6:
                // Who waits for another range while it has one to itself may wait for ever: it is a lock.
                if (exclusive) return;
                exclusive = true;
                return ask(rank, op::GetExclusive{any_range(4), cache}, client);
            default:
                return ask(rank, op::Allocate{(1 + below(8)) * kCell, cache}, client);
        }
    }

    /// Puts or releases something that is held.
    void end_one() {
        if (held.empty()) return;
        const size_t which = below(held.size());
        const auto [rank, client, local, writable, source] = held[which];
        if (!writable || below(4) == 0) {
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
            if (source && writable) exclusive = false;
            return ask(rank, op::Release{local}, client);
        }
        const uint64_t cells = local.range.size / kCell;
        Cells values(cells);
        for (uint32_t& value : values) value = ++last_value;
        std::memcpy(local.base + local.range.offset, values.data(), local.range.size);
        const GlobalRange global =
            source ? *source : GlobalRange{data, {below(kCells - cells + 1) * kCell, local.range.size}};
        op::Put put{local, global, {}, source || below(2) == 0};
        if (below(2) == 0) put.tag = below(3);
        if (readers && put.tag && below(4) == 0) put.readers = 1;
        if (source) exclusive = false;
        // It is not looked at again before it has ended.
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        ask(rank, put, client, std::move(values));
    }

    void collect() {
        for (auto one = asked.begin(); one != asked.end();) {
            if (!world.ended(one->first)) {
                ++one;
                continue;
            }
            ended(one->second, world.outcome(one->first));
            one = asked.erase(one);
        }
    }

    void ended(const Asked& was, const MemoryWorld::Outcome& outcome) {
        if (const auto* error = std::get_if<MemoryError>(&outcome)) {
            EXPECT_TRUE(error->memory_code() == MemoryErrorCode::kCacheFull ||
                        error->memory_code() == MemoryErrorCode::kLargerThanCache)
                << error->what();
            if (std::holds_alternative<op::GetExclusive>(was.operation)) exclusive = false;
            return;
        }
        const auto& result = std::get<OperationResult>(outcome);
        if (const auto* get = std::get_if<op::GetConst>(&was.operation)) {
            const auto local = std::get<ConstLocalRange>(result);
            expect_seen(get->global, local, was.began);
            held.push_back({was.rank, was.client, local, false, {}});
        } else if (const auto* own = std::get_if<op::GetMutable>(&was.operation)) {
            const auto local = std::get<MutableLocalRange>(result);
            expect_seen(own->global, local, was.began);
            held.push_back({was.rank, was.client, local, true, {}});
        } else if (const auto* alone = std::get_if<op::GetExclusive>(&was.operation)) {
            const auto local = std::get<MutableLocalRange>(result);
            expect_seen(alone->global, local, was.began);
            held.push_back({was.rank, was.client, local, true, alone->global});
        } else if (std::holds_alternative<op::Allocate>(was.operation)) {
            held.push_back({was.rank, was.client, std::get<MutableLocalRange>(result), true, {}});
        } else if (const auto* put = std::get_if<op::Put>(&was.operation)) {
            if (!put->release) held.push_back({was.rank, was.client, put->source, true, {}});
        }
    }

    /// What is in the segment now is the newest state.
    void note_state() {
        Cells now(kCells);
        for (const Piece& piece : world[0].node.atlas().pieces({data, {0, kCells * kCell}})) {
            const auto& part = world[piece.home].parts.begin()->second;
            std::memcpy(now.data() + piece.global.range.offset / kCell, part.data() + piece.part_offset,
                        piece.global.range.size);
        }
        if (now != history.back()) history.push_back(std::move(now));
    }

    void expect_seen(const GlobalRange& global, const LocalRange& local, size_t began) {
        Cells seen(global.range.size / kCell);
        std::memcpy(seen.data(), local.base + local.range.offset, global.range.size);
        const auto first = static_cast<std::ptrdiff_t>(global.range.offset / kCell);
        const bool was_there = std::any_of(
            history.begin() + static_cast<std::ptrdiff_t>(began), history.end(),
            [&](const Cells& state) { return std::equal(seen.begin(), seen.end(), state.begin() + first); });
        EXPECT_TRUE(was_there) << "torn or old: cells from " << first << " on, as " << seen.size()
                               << " values";
    }

    void end_all() {
        // Whoever waits for a tag gets it, or leaves.
        for (int round = 0; round < 10'000 && (!held.empty() || world.steps() > 0); ++round) {
            while (world.steps() > 0) take_step();
            if (!held.empty()) {
                const auto [rank, client, local, writable, source] = held.back();
                held.pop_back();
                ask(rank, op::Release{local}, client);
            }
            collect();
        }
        for (memory::Rank rank = 0; rank < world.size(); ++rank)
            for (const ClientId client : {1u, 2u}) world.drop_client(rank, client);
        world.run();
    }

    void take_step() {
        world.step(below(world.steps()));
        note_state();
        collect();
    }

    struct Held {
        memory::Rank rank;
        ClientId client;
        LocalRange local;
        bool writable;
        std::optional<GlobalRange> source;
    };

    std::mt19937_64 random;
    MemoryWorld world;
    DataId data;
    std::vector<std::pair<memory::Rank, CacheId>> caches;
    std::map<Ticket, Asked> asked;
    std::vector<Held> held;
    std::vector<Cells> history;
    uint32_t last_value = 0;
    bool exclusive = false;
    /// Some puts are to be read before the next one; who waits for readers that do not come leaves in the
    /// end.
    bool readers = false;
};

TEST(CoherenceTest, EachCopyIsOfOneMomentAndNothingIsLeftOver) {
    const auto [first, count] = seeds(300);
    for (uint64_t seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(seed);
        Play play(seed);
        for (int i = 0; i < 600; ++i) {
            const uint64_t what = play.below(10);
            if (what < 2 && play.held.size() < 12)
                play.begin_one();
            else if (what < 4)
                play.end_one();
            else if (play.world.steps() > 0)
                play.take_step();
            play.note_state();
            play.collect();
            if (testing::Test::HasFailure()) return;
        }
        play.end_all();
        EXPECT_TRUE(play.world.idle());
        for (const auto& [rank, cache] : play.caches) {
            EXPECT_EQ(play.world[rank].node.caching().held_ranges(), 0U);
            EXPECT_NO_THROW(play.world.remove_cache(rank, cache));
        }
        play.world.run();
        for (memory::Rank rank = 0; rank < play.world.size(); ++rank)
            EXPECT_TRUE(play.world[rank].node.home().sharers({play.data, {0, kCells * kCell}}).empty());
        if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace heddle::test
