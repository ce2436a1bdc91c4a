// What operations on memory wait for and do, in the trace that HEDDLE_TRACE names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "heddle/memory.hpp"
#include "memory/operation_trace.hpp"
#include "support/traced.hpp"

namespace heddle::memory {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr uint64_t kSize = 4096;

/// A process of its own, since a trace ends with its process. Clients are 1 and 2.
int run_traced() {
    Server server;
    Client client(server), other(server);
    const SegmentId segment = client.create_segment(4 * kSize);
    const DataId data = client.allocate(2 * kSize, segment), readers = client.allocate(64, segment);
    const CacheId cache = client.create_cache(kSize);
    const GlobalRange first{data, {0, kSize}}, second{data, {kSize, kSize}};
    client.release(client.get_const(first, cache));   // a miss
    client.release(client.get_const(first, cache));   // a hit
    client.release(client.get_const(second, cache));  // for which the first one goes
    // Two operations of one client at once: one waits for the tag of the other.
    const CacheId small = other.create_cache(256);
    OperationFuture tagged = other.execute(op::GetConst{{readers, {0, 64}}, small, Tag{5}});
    const MutableLocalRange own = other.allocate_local(64, small);
    other.put_and_set_tag(own, {readers, {0, 64}}, 5, 2);
    other.release(std::get<ConstLocalRange>(tagged.get()));
    // A put that waits for the second reader.
    OperationFuture late = other.execute(op::Put{own, {readers, {0, 64}}});
    other.release(other.get_const({readers, {0, 64}}, small, Tag{5}));
    (void)late.get();
    return 0;
}

class MemoryTraces : public ::testing::Test {
  protected:
    /// Row and name of each piece, and how often; waits begin with "waits for".
    static std::map<std::string, int> pieces(const trace::Timeline& timeline) {
        std::map<std::string, int> all;
        for (const trace::Work& work : timeline.work) {
            const std::string row = timeline.lanes.at(static_cast<size_t>(work.lane)).name;
            ++all[row + ": " + (work.kind == trace::SpanKind::kWait ? "waits for " : "") + work.name];
        }
        return all;
    }
};

TEST_F(MemoryTraces, TellWhoMissesWhoWaitsAndWhatMoves) {
    const trace::Timeline timeline = test::trace_of(run_traced);
    EXPECT_EQ(timeline.dropped, 0);
    const std::map<std::string, int> all = pieces(timeline);
    // Allocations are numbered with segments, from 1 on.
    EXPECT_THAT(all, Contains(Pair("memory client 1: get_const of 2, a miss", 2)));
    EXPECT_THAT(all, Contains(Pair("memory client 1: read shm of rank 0", 2)));
    EXPECT_THAT(all, Contains(Pair("memory client 1: evict", 1)));
    EXPECT_THAT(all, Contains(Pair("memory client 2: get_const of 3, a miss", 1)));
    EXPECT_THAT(all, Contains(Pair("memory client 2: waits for a tag", 1)));
    EXPECT_THAT(all, Contains(Pair("memory client 2 2: put of 3", 1))) << "beside the get";
    EXPECT_THAT(all, Contains(Pair("memory client 2 2: write shm of rank 0", 1)));
    EXPECT_THAT(all, Contains(Pair("memory client 2: waits for readers", 1)));
    EXPECT_THAT(all, Not(Contains(Key("memory client 1: get_const of 2")))) << "a hit";
}

TEST_F(MemoryTraces, PiecesOfARowNest) {
    const trace::Timeline timeline = test::trace_of(run_traced);
    std::map<int, std::vector<const trace::Work*>> open;
    for (const trace::Work& work : timeline.work) {
        std::vector<const trace::Work*>& lane = open[work.lane];
        while (!lane.empty() && lane.back()->end_ns <= work.begin_ns) lane.pop_back();
        if (!lane.empty()) {
            EXPECT_LE(work.end_ns, lane.back()->end_ns) << work.name << " in " << lane.back()->name;
        }
        lane.push_back(&work);
    }
}

int run_crowd() {
    Server server;
    Client client(server);
    const DataId data = client.allocate(64, client.create_segment(64));
    const CacheId cache = client.create_cache(64);
    std::vector<OperationFuture> waiting;
    for (size_t i = 0; i < OperationTrace::kMostRows + 3; ++i)
        waiting.push_back(client.execute(op::GetConst{{data, {0, 64}}, cache, Tag{7}}));
    const MutableLocalRange own = client.allocate_local(64, cache);
    client.put_and_release_and_set_tag(own, {data, {0, 64}}, 7);
    for (OperationFuture& one : waiting) client.release(std::get<ConstLocalRange>(one.get()));
    return 0;
}

TEST_F(MemoryTraces, MoreOperationsAtOnceThanRowsAreCounted) {
    const trace::Timeline timeline = test::trace_of(run_crowd);
    EXPECT_GE(timeline.dropped, 3);
    EXPECT_EQ(timeline.lanes.size(), OperationTrace::kMostRows);
}

}  // namespace
}  // namespace heddle::memory
