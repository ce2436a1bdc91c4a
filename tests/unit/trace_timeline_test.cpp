#include "trace/timeline.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "trace/axis.hpp"
#include "trace/by_task.hpp"
#include "trace/drawing.hpp"
#include "trace/palette.hpp"
#include "trace/raster.hpp"
#include "trace/summary.hpp"

using namespace heddle::trace;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr Client kA{1};
constexpr Client kB{2};

Trace trace_of(int cpus, std::vector<Event> events) {
    Trace trace;
    for (int i = 0; i < cpus; ++i) trace.header.cpus.push_back({i, i, 0, 0});
    trace.events = std::move(events);
    return trace;
}

std::string text_of(const std::vector<Step>& steps) {
    std::string text;
    for (const Step& step : steps)
        text += std::to_string(step.at_ns) + ":" + std::to_string(step.value) + " ";
    return text;
}

std::string text_of(const std::vector<Run>& runs, int columns) {
    std::string text(static_cast<size_t>(columns), '.');
    for (const Run& run : runs)
        for (int i = 0; i < run.count; ++i)
            text[static_cast<size_t>(run.first + i)] = static_cast<char>('A' + run.user);
    return text;
}

}  // namespace

TEST(Timeline, OfAnEmptyTraceIsEmpty) {
    const Timeline timeline(trace_of(2, {}));
    EXPECT_EQ(timeline.end_ns, 0);
    EXPECT_EQ(timeline.cpus.size(), 2U);
    EXPECT_TRUE(timeline.cpus[0].slices.empty());
    EXPECT_EQ(summary(timeline).capacity_s, 0);
    EXPECT_TRUE(rasterize(timeline.cpus, timeline.end_ns, 10).empty());
}

TEST(Timeline, SlicesFollowTheChanges) {
    const Timeline timeline(trace_of(1, {{0, Joined{kA, 10, "a"}},
                                         {10, CpuChanged{0, kA, {}, "openmp"}},
                                         {15, CpuChanged{0, kA, {}, "openmp"}},  // says nothing new
                                         {20, CpuChanged{0, kB, {}, ""}},
                                         {20, CpuChanged{0, kA, {}, ""}},  // B had it for no time
                                         {30, CpuChanged{0, {}, {}, ""}},
                                         {50, Mark{kEndMark}}}));
    ASSERT_EQ(timeline.cpus[0].slices.size(), 2U);
    EXPECT_EQ(timeline.cpus[0].slices[0].end_ns, 20);
    EXPECT_EQ(timeline.components.at(static_cast<size_t>(timeline.cpus[0].slices[0].component)), "openmp");
    EXPECT_EQ(timeline.cpus[0].slices[1].end_ns, 30);
    EXPECT_EQ(text_of(timeline.clients[0].held), "10:1 20:1 30:0 ");
    EXPECT_EQ(timeline.clients[1].name, "client 2") << "it was never seen joining";
    EXPECT_EQ(timeline.end_ns, 50);
    EXPECT_TRUE(timeline.marks.empty()) << "the mark \"end\" is no event of the programs";
}

TEST(Timeline, WhoLeftHoldsAndWantsNothing) {
    const Timeline timeline(trace_of(2, {{0, CpuChanged{0, kA, kA, ""}},
                                         {0, CpuChanged{1, kA, {}, ""}},
                                         {0, DemandChanged{kA, 4}},
                                         {0, WaitingChanged{kA, 2}},
                                         {10, Left{kA, Departure::kKilled}},
                                         {30, Mark{kEndMark}}}));
    EXPECT_EQ(text_of(timeline.clients[0].held), "0:2 10:0 ");
    EXPECT_EQ(text_of(timeline.clients[0].demand), "0:4 10:0 ");
    EXPECT_EQ(text_of(timeline.clients[0].waiting), "0:2 10:0 ");
    EXPECT_EQ(timeline.cpus[1].slices.back().end_ns, 10);
    EXPECT_EQ(timeline.clients[0].left_ns, 10);
}

TEST(Timeline, CpusAreGroupedByWhereTheySit) {
    Trace trace;
    trace.header.cpus = {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 0, 0, 0}, {3, 1, 1, 1}};
    const Timeline timeline(trace);
    const auto groups = rows_of(timeline, 64);
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(groups[0].label, "package 0");
    EXPECT_EQ(groups[0].rows[1].label, "CPU 2") << "siblings side by side";
    EXPECT_EQ(rows_of(timeline, 2)[1].rows[0].label, "CPU 1,3") << "several CPUs in a row";
}

TEST(Summary, CountsUsedLentIdleAndWaited) {
    const Timeline timeline(trace_of(2, {{0, CpuChanged{0, kA, kA, ""}},
                                         {0, CpuChanged{1, kA, kA, ""}},
                                         {0, WaitingChanged{kB, 2}},
                                         {2 * kSecond, CpuChanged{1, {}, kA, ""}},
                                         {3 * kSecond, CpuChanged{1, kB, kA, ""}},
                                         {3 * kSecond, WaitingChanged{kB, 1}},
                                         {7 * kSecond, CpuChanged{1, {}, {}, ""}},
                                         {10 * kSecond, Mark{kEndMark}}}));
    const Summary sum = summary(timeline);
    EXPECT_DOUBLE_EQ(sum.capacity_s, 20);
    EXPECT_DOUBLE_EQ(sum.used_s, 16);
    EXPECT_DOUBLE_EQ(sum.idle_s, 4);
    EXPECT_DOUBLE_EQ(sum.lent_s, 4);
    EXPECT_DOUBLE_EQ(sum.clients[0].used_s, 12);
    EXPECT_DOUBLE_EQ(sum.clients[0].lent_s, 4);
    EXPECT_DOUBLE_EQ(sum.clients[0].idle_s, 1);
    EXPECT_DOUBLE_EQ(sum.clients[0].borrowed_s, 0);
    EXPECT_DOUBLE_EQ(sum.clients[1].borrowed_s, 4);
    EXPECT_DOUBLE_EQ(sum.clients[1].waited_s, 2 * 3 + 7);
    EXPECT_EQ(core_seconds(12.34), "12.3 core-s");
    EXPECT_EQ(core_seconds(0.9996), "1 core-s");
    EXPECT_EQ(core_seconds(2.5e-6), "2.5 core-µs");
    EXPECT_EQ(core_seconds(123456), "123456 core-s");
}

TEST(Raster, WideSlicesAreWhereTheyWere) {
    const Timeline timeline(trace_of(1, {{20, CpuChanged{0, kA, {}, ""}},
                                         {50, CpuChanged{0, kB, {}, ""}},
                                         {70, CpuChanged{0, {}, {}, ""}},
                                         {100, Mark{kEndMark}}}));
    EXPECT_EQ(text_of(rasterize(timeline.cpus, 100, 10), 10), "..AAABB...");
}

TEST(Raster, AMillionThinSlicesKeepTheirShares) {
    std::vector<Event> events;
    for (int64_t i = 0; i < 1'000'000; ++i)
        events.push_back({10 * i + (i % 2 == 0 ? 0 : -3), CpuChanged{0, i % 2 == 0 ? kA : kB, {}, ""}});
    const Timeline timeline(trace_of(1, std::move(events)));  // A has 7 ns of each 20, B 13
    const auto runs = rasterize(timeline.cpus, timeline.end_ns, 1000);
    int columns_of_a = 0;
    for (const auto& run : runs) columns_of_a += run.user == 0 ? run.count : 0;
    EXPECT_NEAR(columns_of_a, 350, 2);
    EXPECT_GT(runs.size(), 500U) << "spread over the row, not in one block";
}

TEST(Raster, SeveralCpusShareARowFairly) {
    const Timeline timeline(trace_of(4, {{0, CpuChanged{0, kA, {}, ""}}, {1000, Mark{kEndMark}}}));
    const std::string row = text_of(rasterize(timeline.cpus, 1000, 400), 400);
    EXPECT_EQ(std::count(row.begin(), row.end(), 'A'), 100);
}

TEST(Raster, MeansKeepTheIntegral) {
    const std::vector<Step> steps = {{5, 2}, {15, 6}, {33, 0}};
    const std::vector<double> means = column_means(steps, 50, 5);
    EXPECT_DOUBLE_EQ(means[0], 1);
    EXPECT_DOUBLE_EQ(means[1], 4);
    EXPECT_DOUBLE_EQ(std::accumulate(means.begin(), means.end(), 0.0) * 10, 2 * 10 + 6 * 18);
}

TEST(Axis, TicksAreRoundAndFew) {
    const auto labels = [](int64_t end, int most) {
        std::string text;
        for (const Tick& tick : ticks(end, most)) text += tick.label + "|";
        return text;
    };
    EXPECT_EQ(labels(0, 9), "0|1 ns|");
    EXPECT_EQ(labels(10, 6), "0|2 ns|4 ns|6 ns|8 ns|10 ns|");
    EXPECT_EQ(labels(2'400'000'000, 9), "0|0.5 s|1 s|1.5 s|2 s|");
    EXPECT_EQ(labels(900'000'000, 5), "0|500 ms|");
    EXPECT_EQ(labels(7 * 60 * kSecond, 9), "0|1 min|2 min|3 min|4 min|5 min|6 min|7 min|");
    EXPECT_EQ(labels(100 * 3600 * kSecond, 4), "0|2 d|4 d|");
    for (int64_t end = 1; end < kMaxTime_ns / 3; end = end * 3 + 1) {
        EXPECT_LE(ticks(end, 9).size(), 9U) << end;
        EXPECT_GE(ticks(end, 9).size(), 2U) << end;
    }
    EXPECT_EQ(duration(999'999), "1 ms");
    EXPECT_EQ(duration(12'340'000'000), "12.3 s");
    EXPECT_EQ(duration(125 * kSecond), "2 min 5 s");
}

TEST(Palette, ColoursAreStableAndDiffer) {
    for (size_t a = 0; a < 40; ++a)
        for (size_t b = 0; b < a; ++b) EXPECT_NE(color_of(a).hex(), color_of(b).hex()) << a << " and " << b;
    EXPECT_EQ(color_of(0).hex(), "#2f74d0");
    EXPECT_EQ((Color{255, 255, 255}.terminal()), 231);
    EXPECT_EQ((Color{0, 0, 0}.terminal()), 16);
}

TEST(Timeline, AWorkersRowBelongsToTheInnermostWork) {
    const auto span = [](int64_t begin, int64_t end, const char* name, SpanKind kind = SpanKind::kWork) {
        return Event{end, Span{kA, "w 1", name, begin, kind, {}, -1}};
    };
    const Timeline tasks =
        by_task(Timeline(trace_of(1, {span(0, 100, "outer"), span(10, 20, "inner"),
                                      span(30, 50, "w", SpanKind::kWait), span(40, 50, "x")})));
    ASSERT_EQ(tasks.cpus.size(), 1U);
    EXPECT_EQ(tasks.cpus[0].label, "w 1");
    std::string row;
    for (const Slice& slice : tasks.cpus[0].slices)
        row += tasks.clients[static_cast<size_t>(slice.user)].name + " " + std::to_string(slice.begin_ns) +
               "-" + std::to_string(slice.end_ns) + ", ";
    EXPECT_EQ(row, "outer 0-10, inner 10-20, outer 20-30, x 40-50, outer 50-100, ");
    EXPECT_DOUBLE_EQ(summary(tasks).used_s, 90e-9) << "nobody works where a thread waits";
    EXPECT_TRUE(by_task(Timeline(trace_of(1, {}))).cpus.empty());
}

TEST(Timeline, APausedTaskGoesOnInItsNextPiece) {
    const auto piece = [](int64_t begin, int64_t end, int64_t task, SpanKind kind = SpanKind::kWork) {
        return Event{end, Span{kA, "w", "t", begin, kind, task, -1}};
    };
    const Timeline timeline(trace_of(1, {piece(0, 10, 1, SpanKind::kPaused),
                                         piece(10, 20, 2, SpanKind::kPaused),
                                         piece(30, 40, 1, SpanKind::kPaused),
                                         piece(45, 50, 1),
                                         {100, Mark{"end"}}}));
    EXPECT_EQ(text_of(timeline.clients[0].paused), "10:1 20:2 30:1 40:2 45:1 ");
    const auto accounts = work_summary(timeline);
    ASSERT_EQ(accounts.size(), 1U);
    EXPECT_EQ(accounts[0].ended, 1);
    EXPECT_EQ(accounts[0].pauses, 3);
    EXPECT_DOUBLE_EQ(accounts[0].run_s, 35e-9);
    EXPECT_DOUBLE_EQ(accounts[0].paused_s, (20 + 5 + 80) * 1e-9) << "one of them to the end of the trace";
}
