// What transfers would cost, and where data are: by a clock that stands still until it is told, and on
// servers of several ranks and of clients in other processes.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "heddle/memory.hpp"
#include "memory/link_speed.hpp"
#include "support/on_ranks.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::DoubleNear;
using testing::ElementsAre;

/// Each read takes its latency and a time for each byte, the first one of a size ten times as long.
class SlowSegment final : public Segment {
  public:
    SlowSegment(FakeClock& clock, int64_t latency_ns, int64_t ns_per_byte)
        : clock_(clock), latency_(latency_ns), per_byte_(ns_per_byte) {}
    std::byte* address() noexcept override { return nullptr; }
    std::string contact() const override { return {}; }
    void attach(const std::vector<std::string>&) override {}
    void read(memory::Rank rank, uint64_t, std::byte*, uint64_t size) override {
        const int slow = seen_.insert({rank, size}).second ? 10 : 1;
        clock_.advance(Nanoseconds(slow * (latency_ + static_cast<int64_t>(size) * per_byte_)));
    }
    void write(memory::Rank, uint64_t, const std::byte*, uint64_t) override {}

  private:
    FakeClock& clock_;
    int64_t latency_, per_byte_;
    std::set<std::pair<memory::Rank, uint64_t>> seen_;
};

TEST(LinkSpeedsTest, AreWhatReadsTake) {
    FakeClock clock;
    SlowSegment segment(clock, 5'000, 2);
    const LinkSpeed speed = measure_link(segment, 3, 1 << 20, clock);
    EXPECT_THAT(speed.s_per_byte, DoubleNear(2e-9, 1e-13));
    EXPECT_THAT(speed.latency_s, DoubleNear(5.128e-6, 1e-10));
    LinkSpeeds speeds;
    speeds.add_segment({7}, "slow");
    speeds.learn("slow", 3, speed);
    EXPECT_THAT(speeds.seconds({7}, 3, 1000), DoubleNear(7.128e-6, 1e-9));
    EXPECT_EQ(speeds.seconds({7}, 2, 1000), 0) << "of a link that is not known";
    EXPECT_EQ(speeds.seconds({8}, 3, 1000), 0) << "of a segment that is not known";
}

TEST(LinkSpeedsTest, AreMeasuredAgainByLongerSamplesAlone) {
    FakeClock clock;
    SlowSegment segment(clock, 100, 1);
    LinkSpeeds speeds;
    EXPECT_THAT(speeds.unknown("slow", {10, 0, 1 << 20}), ElementsAre(0, 2)) << "rank 1 has no part";
    speeds.learn("slow", 0, measure_link(segment, 0, 10, clock));
    speeds.learn("slow", 2, measure_link(segment, 2, 1 << 20, clock));
    EXPECT_THAT(speeds.unknown("slow", {10, 5, 1 << 30}), ElementsAre(1));
    EXPECT_THAT(speeds.unknown("slow", {11, 0, 0}), ElementsAre(0));
    EXPECT_NE(link_kind("file", {{"path", "/a"}}), link_kind("file", {{"path", "/b"}}));
}

/// By rank.
std::map<memory::Rank, double> by_rank(const std::vector<TransferCost>& costs) {
    std::map<memory::Rank, double> all;
    for (size_t i = 0; i < costs.size(); ++i) {
        all[costs[i].rank] = costs[i].seconds;
        EXPECT_LE(costs[i == 0 ? 0 : i - 1].seconds, costs[i].seconds);
    }
    return all;
}

TEST(MemoryCostsTest, KnowWhatEachRankHasCached) {
    constexpr memory::Rank kRanks = 3;
    constexpr uint64_t kBlock = 100'000;
    on_ranks(kRanks, [&](Server& server, Client& client, Collective& collective) {
        const memory::Rank rank = server.rank();
        const SegmentId segment = collective.create_segment(kRanks * kBlock);
        const DataId data = collective.allocate(kRanks * kBlock, segment);
        const CacheId cache = client.create_cache(kRanks * kBlock);
        // Rank 1 has a copy of what lies on rank 2, rank 2 of some of what lies on 0 and 1.
        const GlobalRange of_two{data, {2 * kBlock, kBlock}}, between{data, {kBlock - 10, 20}};
        if (rank == 1) client.release(client.get_const(of_two, cache));
        if (rank == 2) client.release(client.get_const(between, cache));
        collective.barrier();
        const std::vector<Operation> gets{op::GetConst{of_two, {}}};
        const auto costs = client.transfer_costs(gets);
        auto each = by_rank(costs);
        EXPECT_EQ(each.size(), kRanks);
        EXPECT_EQ(costs.at(0).rank, 1u) << "the one that has it";
        EXPECT_EQ(each.at(1), 0);
        EXPECT_GT(each.at(0), 0);
        EXPECT_GT(each.at(2), 0) << "its own memory is no copy";
        // Directly it costs the rank nothing on which it lies.
        each = by_rank(client.transfer_costs({op::GetConst{of_two, {}, {}, true}}));
        EXPECT_EQ(each.at(2), 0);
        EXPECT_GT(each.at(0), 0);
        // What has to be fetched anew, what is written, and twice as much.
        each = by_rank(client.transfer_costs({op::GetExclusive{of_two, {}}}));
        EXPECT_GT(each.at(1), 0);
        const double once = each.at(0);
        each = by_rank(client.transfer_costs(
            {op::Put{{}, of_two}, op::GetExclusive{of_two, {}}, op::Allocate{5, {}}, op::Release{}}));
        EXPECT_DOUBLE_EQ(each.at(0), 2 * once);
        const auto places = client.data_locality({{data, {kBlock - 50, kBlock + 100}}, of_two});
        ASSERT_EQ(places.size(), 4u);
        EXPECT_EQ(places[0].range, (GlobalRange{data, {kBlock - 50, 50}}));
        EXPECT_EQ(places[0].home, 0u);
        EXPECT_THAT(places[0].copies, ElementsAre(2));
        EXPECT_EQ(places[1].home, 1u);
        EXPECT_THAT(places[1].copies, ElementsAre(2));
        EXPECT_EQ(places[2].range, (GlobalRange{data, {2 * kBlock, 50}}));
        EXPECT_THAT(places[2].copies, ElementsAre(1));
        EXPECT_THAT(places[3].copies, ElementsAre(1));
        collective.barrier();
        // A put takes the copies away.
        if (rank == 0) {
            const MutableLocalRange own = client.get_mutable(of_two, cache);
            client.put_and_release(own, of_two);
        }
        collective.barrier();
        each = by_rank(client.transfer_costs(gets));
        EXPECT_EQ(each.at(0), 0) << "what was put stays as a copy";
        EXPECT_GT(each.at(1), 0);
    });
}

TEST(MemoryCostsTest, OfMoreThanOnePacket) {
    Server server;
    Client client(server);
    const SegmentId segment = client.create_segment(10'000);
    const DataId data = client.allocate(10'000, segment);
    const CacheId cache = client.create_cache(10'000), other = client.create_cache(10);
    std::vector<Operation> gets;
    std::vector<GlobalRange> ranges;
    for (uint64_t i = 0; i < 1000; ++i) {
        ranges.push_back({data, {i * 10, 10}});
        gets.push_back(op::GetConst{ranges.back(), cache});
    }
    const double all = client.transfer_costs(gets).at(0).seconds;
    EXPECT_GT(all, 0);
    for (uint64_t i = 500; i < 1000; ++i) client.release(client.get_const(ranges[i], cache));
    EXPECT_LT(client.transfer_costs(gets).at(0).seconds, all);
    // A copy in another cache is of no use to who gets into this one.
    std::get<op::GetConst>(gets[700]).cache = other;
    EXPECT_EQ(client.transfer_costs({gets[701]}).at(0).seconds, 0);
    EXPECT_GT(client.transfer_costs({gets[700]}).at(0).seconds, 0);
    const auto places = client.data_locality(ranges);
    ASSERT_EQ(places.size(), 1000u);
    EXPECT_TRUE(places[499].copies.empty());
    EXPECT_THAT(places[500].copies, ElementsAre(0));
    EXPECT_THAT(places[999].copies, ElementsAre(0));
    EXPECT_EQ(client.transfer_costs({}).at(0).seconds, 0);
    EXPECT_TRUE(client.data_locality({}).empty());

    const TemporaryFolder folder;
    const IpcServer door(server, folder.path() + "/memory");
    const Client far(door.path());
    for (auto& get : gets) std::get<op::GetConst>(get).cache = {};
    EXPECT_DOUBLE_EQ(far.transfer_costs(gets).at(0).seconds, client.transfer_costs(gets).at(0).seconds);
    const auto told = far.data_locality(ranges);
    ASSERT_EQ(told.size(), 1000u);
    EXPECT_EQ(told[999].range, ranges[999]);
    EXPECT_THAT(told[999].copies, ElementsAre(0));
    EXPECT_TRUE(told[0].copies.empty());
    EXPECT_EQ(far.transfer_costs({}).at(0).seconds, 0);
}

TEST(MemoryCostsTest, OfWhatIsNotThere) {
    Server server;
    Client client(server);
    const SegmentId segment = client.create_segment(100);
    const DataId data = client.allocate(100, segment);
    const TemporaryFolder folder;
    const IpcServer door(server, folder.path() + "/memory");
    const Client far(door.path());
    for (const Client* one : {static_cast<const Client*>(&client), &far}) {
        const auto costs_of = [&](const GlobalRange& range) {
            try {
                (void)one->transfer_costs({op::GetConst{range, {}}});
            } catch (const MemoryError& error) {
                return static_cast<int>(error.memory_code());
            }
            return -1;
        };
        EXPECT_EQ(costs_of({data, {50, 51}}), static_cast<int>(MemoryErrorCode::kOutside));
        EXPECT_EQ(costs_of({{99}, {0, 1}}), static_cast<int>(MemoryErrorCode::kUnknown));
        EXPECT_THROW((void)one->data_locality({{data, {50, 51}}}), MemoryError);
        EXPECT_THROW((void)one->data_locality({{{99}, {0, 1}}}), MemoryError);
    }
}

TEST(MemoryCostsTest, ARankThatGoesIsNotWaitedFor) {
    const TemporaryFolder folder;
    std::atomic<int> asked{0};
    std::thread other([&] {
        Server server({1, 2, folder.path(), 30});
        while (asked == 0) std::this_thread::yield();
    });
    Server server({0, 2, folder.path(), 30});
    Client client(server);
    const DataId data = client.allocate(100, client.create_segment(100), {"prefix_filled", {}});
    while (client.transfer_costs({op::GetConst{{data, {0, 10}}, {}}}).size() == 2) asked = 1;
    EXPECT_EQ(client.transfer_costs({op::GetConst{{data, {0, 10}}, {}}}).at(0).rank, 0u);
    other.join();
}

}  // namespace
}  // namespace heddle::test
