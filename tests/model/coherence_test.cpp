// Random operations of several clients on several ranks, with messages and transfers in any order that the
// channels allow: each copy shows what was in memory at one moment while it was asked for, nobody waits for
// ever, and nothing is left over.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "memory/pinned_copies.hpp"
#include "support/memory_world.hpp"
#include "support/seeds.hpp"

namespace heddle::memory {
namespace {

using namespace test;

constexpr uint64_t kCells = 24;
constexpr uint64_t kCell = sizeof(uint32_t);
using Cells = std::vector<uint32_t>;

/// A client of another process, by what it pins in one cache without a message.
class Elsewhere {
  public:
    Elsewhere(MemoryWorld& world, memory::Rank rank, CacheId cache)
        : listed_(world[rank].listed.at(cache)),
          payload_(world[rank].payloads.at(cache).data()),
          copies_({listed_.listings.get(), listed_.count}, *page_) {
        listed_.copies.attach(*page_);
    }
    ~Elsewhere() { leave(); }
    Elsewhere(const Elsewhere&) = delete;
    Elsewhere& operator=(const Elsewhere&) = delete;

    struct Held {
        uint64_t id;
        const std::byte* at;
        std::vector<std::byte> was;
    };
    std::optional<LocalRange> get(const GlobalRange& global) {
        const auto pinned = copies_.get(global);
        if (!pinned) return {};
        const std::byte* const at = payload_ + pinned->place;
        held_.push_back({pinned->id, at, {at, at + global.range.size}});
        return LocalRange{{}, pinned->id, payload_, {pinned->place, global.range.size}};
    }
    [[nodiscard]] size_t held() const { return held_.size(); }
    void release(size_t which) {
        const Held& one = held_[which];
        EXPECT_TRUE(std::equal(one.was.begin(), one.was.end(), one.at)) << "what is held has changed";
        EXPECT_TRUE(copies_.release(one.id));
        EXPECT_FALSE(copies_.release(one.id));
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    void leave() {
        if (!std::exchange(gone_, true)) listed_.copies.detach(*page_);
    }

  private:
    MemoryWorld::Listed& listed_;
    std::byte* payload_;
    std::unique_ptr<PinPage> page_ = std::make_unique<PinPage>();
    PinnedCopies copies_;
    std::vector<Held> held_;
    bool gone_ = false;
};

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
        calm = seed % 5 == 1;
        if (seed % 2 == 0) return;
        for (const auto& [rank, cache] : caches)
            for (int i = 0; i < 2; ++i) elsewhere.push_back(std::make_unique<Elsewhere>(world, rank, cache));
    }

    /// A client of another process hits, or releases, without a message.
    void act_elsewhere() {
        if (elsewhere.empty()) return;
        Elsewhere& client = *elsewhere[below(elsewhere.size())];
        if (client.held() > 0 && below(3) == 0) return client.release(below(client.held()));
        // What another one asked for may be there.
        if (client.held() > 2 || gets.empty()) return;
        const GlobalRange& global = gets[below(gets.size())];
        const std::optional<LocalRange> local = client.get(global);
        if (!local) return;
        expect_seen(global, *local, history.size() - 1);
        ++hits_elsewhere;
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
                gets.push_back(any_range(8));
                if (gets.size() > 20) gets.erase(gets.begin());
                return ask(rank, op::GetConst{gets.back(), cache}, client);
            case 4:
                return ask(rank, op::GetMutable{any_range(8), cache}, client);
            case 5:
                if (calm) return ask(rank, op::GetConst{any_range(8), cache}, client);
                return ask(rank, op::GetConst{any_range(8), cache, Tag{below(3)}}, client);
            case 6:
                if (calm) return;
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
        if (!writable || below(4) == 0 || (calm && below(16) > 0)) {
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
        if (!calm && below(2) == 0) put.tag = below(3);
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
        for (const auto& client : elsewhere) {
            while (client->held() > 0 && below(4) > 0) client->release(0);
            client->leave();
        }
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
            for (const ClientId client : {1u, 2u}) world.drop_client(rank, client, below(2) == 0);
        world.run();
    }

    /// There are no copies any more: homes know of what they have delegated, and of nothing else.
    void expect_delegations_known() {
        for (uint64_t cell = 0; cell < kCells; ++cell) {
            const Piece piece = world[0].node.atlas().pieces({data, {cell * kCell, kCell}}).front();
            std::set<memory::Rank> delegated_to;
            for (memory::Rank rank = 0; rank < world.size(); ++rank)
                if (world[rank].node.caching().is_delegated(piece)) delegated_to.insert(rank);
            EXPECT_EQ(world[piece.home].node.home().sharers(piece.global), delegated_to) << "cell " << cell;
            delegated += delegated_to.size();
        }
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
    std::vector<std::unique_ptr<Elsewhere>> elsewhere;
    std::vector<GlobalRange> gets;
    size_t hits_elsewhere = 0;
    std::vector<Cells> history;
    uint32_t last_value = 0;
    bool exclusive = false;
    /// Some puts are to be read before the next one; who waits for readers that do not come leaves in the
    /// end.
    bool readers = false;
    /// Hardly anybody writes, and there are no tags: homes delegate all that they have.
    bool calm = false;
    size_t delegated = 0;
};

TEST(CoherenceTest, EachCopyIsOfOneMomentAndNothingIsLeftOver) {
    const auto [first, count] = seeds(300);
    size_t hits_elsewhere = 0, delegated = 0;
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
            if (play.below(4) == 0) play.act_elsewhere();
            if (testing::Test::HasFailure()) return;
        }
        play.end_all();
        EXPECT_TRUE(play.world.idle());
        for (const auto& [rank, cache] : play.caches) {
            EXPECT_EQ(play.world[rank].node.caching().held_ranges(), 0U);
            EXPECT_NO_THROW(play.world.remove_cache(rank, cache));
        }
        play.world.run();
        play.expect_delegations_known();
        delegated += play.delegated;
        hits_elsewhere += play.hits_elsewhere;
        if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(hits_elsewhere, count);
    EXPECT_GT(delegated, count / 4);
}

}  // namespace
}  // namespace heddle::memory
