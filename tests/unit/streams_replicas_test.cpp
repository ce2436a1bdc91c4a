// Replicas of stars and splits: what they do to records, and that they leave nothing behind.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <malloc.h>

#include <atomic>
#include <map>
#include <random>

#include "streams/network.hpp"
#include "streams/parser.hpp"
#include "support/running_net.hpp"
#include "support/sanitized.hpp"

namespace heddle::streams {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

/// Bytes, by malloc.
size_t allocated() {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

TEST(StreamsReplicasTest, AStarThatNothingLeavesEndsAtItsLimit) {
    const auto program = parse(Source("test", "net n connect [{<a>} -> {<a>}] * {<b>};"));
    NetworkOptions options;
    options.most_stages = 100;
    options.output = [](const Record&) {};
    Network network(*program, std::move(options));
    EXPECT_THAT(
        [&] {
            network.push(with({{kA, 1}}));
        },
        ThrowsMessage<Error>(HasSubstr("this is replica 100, and none may be more")));
}

/// A chain of cells that have fired is left out: who comes later does not pass it stage by stage.
TEST(StreamsReplicasTest, SynchrocellsThatAreDoneCostNothing) {
    constexpr int kPairs = 20'000;
    RunningNet run("net n connect [| {<a>}, {<b>} |] * {<a>, <b>};", 2);
    for (int i = 0; i < kPairs; ++i) {
        run.network().push(with({{kA, i}}));
        run.network().push(with({{kB, i}}));
    }
    run.network().settle();
    EXPECT_EQ(run.values(kA), upto(kPairs));
    EXPECT_EQ(run.values(kB), upto(kPairs));
}

/// A field that is counted while it is there.
class Living final : public FieldValue {
  public:
    explicit Living(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Living() override { --count_; }
    [[nodiscard]] std::string_view interface() const override { return "test"; }
    [[nodiscard]] std::string text() const override { return ""; }

  private:
    std::atomic<int>& count_;
};

/// A million short lives each: of a star's replicas, of a split's that hold something, and of one's that do
/// not.
TEST(StreamsReplicasTest, ReplicasThatAreDoneAreGone) {
    constexpr int kCount = kSanitized ? 20'000 : 1'000'000;
    const Label value(LabelKind::kField, "v");
    for (const char* net :
         {"net n connect [| {<a>}, {<b>} |] * {<a>, <b>};", "net n connect [| {<a>}, {<b>} |] ! <k>;",
          "net n connect ([] .. [| {<a>}, {<b>} |] .. []) ! <k>;",
          "net n connect ([] .. [| {<a>}, {<b>} |] * {<a>, <b>}) ! <k>;",
          "net n connect [{<k>} -> {<k>, <d = k + 1>}] ! <k>;"}) {
        const auto program = parse(Source("test", net));
        std::atomic<int> living{0};
        size_t out = 0;
        int most = 0;
        NetworkOptions options;
        options.output = [&](const Record&) { ++out; };
        Network network(*program, std::move(options));
        for (int i = 0; i < kCount; ++i) {
            for (const Label label : {kA, kB}) {
                Record record = with({{label, 1}, {kK, i}});
                record.set(value, std::make_shared<Living>(living));
                network.push(std::move(record));
            }
            most = std::max(most, living.load());
        }
        network.settle();
        EXPECT_EQ(out,
                  std::string_view(net).find("[|") == std::string_view::npos ? 2u * kCount : size_t{kCount});
        EXPECT_EQ(living, 0) << net;
        EXPECT_LE(most, 4) << net;
        EXPECT_LT(network.part_count(), 1500u) << net;
        EXPECT_THAT(network.remarks(), IsEmpty());
    }
}

/// The same of stars whose stages are more than a cell, beside them of splits and nets in their stages.
TEST(StreamsReplicasTest, StagesThatAreDoneAreGone) {
    constexpr int kMost = kSanitized ? 2'000 : 1'000'000;
    constexpr int kEach = 64;
    const Label value(LabelKind::kField, "v");
    const std::string last = "([{<a>, <b>} -> {<a>, <d = 1>}] | [])";
    for (const std::string& net : std::vector<std::string>{
             "net n connect ([| {<a>}, {<b>} |] .. " + last + ") * {<d>};",
             "net n connect ([] .. [| {<a>}, {<b>} |] .. " + last + ") * {<d>} if <d == 1>;",
             "net n { net cell connect [| {<a>}, {<b>} |]; } connect (cell .. " + last + ") * {<d>};",
             "net n connect ([| {<a>}, {<b>} |] * {<a>, <b>} .. " + last + ") * {<d>};",
             "net n connect (([| {<a>}, {<b>} |] .. []) * {<a>, <b>} .. " + last + ") * {<d>};",
             "net n connect (([| {<a>}, {<b>} |] .. " + last + ") * {<d>}) ! <c>;",
             "net n connect ((([] .. [| {<a>}, {<b>} |]) ! <k>) .. " + last + ") ! <c>;",
             "net n { box f ((<a>, <b>) -> (<a>, <d>)); } connect ([| {<a>}, {<b>} |] .. (f | [])) * {<d>};",
             "net n { box f ((<a>, <b>) -> (<a>, <d>)); }"
             "connect ([| {<a>}, {<b>} |] .. (f || [])) ** {<d>};"}) {
        SCOPED_TRACE(net);
        const int count = net.find("box") == std::string::npos ? kMost : kMost / 100;
        const auto program = parse(Source("test", net));
        std::atomic<int> living{0};
        int out = 0, most = 0;
        NetworkOptions options;
        options.queue_bound = 4;
        options.boxes = [](const BoxDefinition&) {
            return [](BoxCall& call) { call.emit(1, std::vector<BoxValue>{call.arguments()[0], 1}); };
        };
        options.output = [&](const Record&) { ++out; };
        Network network(*program, std::move(options));
        for (int i = 0; i < count; ++i) {
            for (const Label label : {kA, kB}) {
                Record record = with({{label, 1}, {kK, i}, {Label(LabelKind::kTag, "c"), 5}});
                record.set(value, std::make_shared<Living>(living));
                network.push(std::move(record));
            }
            most = std::max(most, living.load());
            if (i % kEach == 0) network.settle();  // or stages with a record before their box are many
        }
        network.settle();
        EXPECT_EQ(out, count);
        EXPECT_EQ(living, 0);
        EXPECT_LE(most, 2 * kEach);
        EXPECT_LT(network.part_count(), 1500u);
        EXPECT_THAT(network.remarks(), IsEmpty());
    }
}

/// Stages of which a part only has fired, too: they are few who can be told from each other.
TEST(StreamsReplicasTest, StagesThatAreHalfDoneAreGone) {
    constexpr int kCount = kSanitized ? 100 : 1'000;
    RunningNet run(
        "net n connect (([| {<a>}, {<b>} |] | [| {<c>}, {<k>} |]) .. ([{<a>, <b>} -> {<a>, <d = 1>}] | [])) "
        "* "
        "{<d>};");
    for (int i = 0; i < kCount; ++i) {
        run.network().push(with({{kA, i}}));
        run.network().push(with({{kB, i}}));
    }
    run.network().settle();
    EXPECT_EQ(run.values(kA), upto(kCount));
    EXPECT_LT(run.network().part_count(), 100u);
}

/// A sum that goes from stage to stage, and meets a record in each: all stages before it have fired.
TEST(StreamsReplicasTest, AStarThatMergesLeavesNoStages) {
    constexpr int kCount = kSanitized ? 20'000 : 2'000'000;
    const std::string merge = "net n connect ([| {<a>}, {<b>} |] .. ([{<a>, <b>} -> {<a = a + b>}] | [])) ";
    RunningNet run(merge + fmt::format("* {{<a>}} if <a >= {}>;", kCount));
    run.network().push(with({{kA, 0}}));
    for (int i = 0; i < kCount; ++i) run.network().push(with({{kB, 1}}));
    run.network().settle();
    EXPECT_THAT(run.values(kA), ElementsAre(kCount));
    EXPECT_LT(run.network().part_count(), 100u);
}

/// What one record goes through alone: its stages end behind it.
TEST(StreamsReplicasTest, ADeepRecordLeavesNoStages) {
    constexpr int kDepth = kSanitized ? 20'000 : 900'000;
    for (const std::string net :
         {"net n connect [{<a>} -> {<a = a - 1>}] * {<a>} if <a == 0>;",
          "net n connect [{<a>} -> {<a = a - 1>}] ** {<a>} if <a == 0>;",
          "net n { box f ((<a>) -> (<a>)); } connect f * {<a>} if <a == 0>;",
          "net n { net i ({<a>} -> {<a>}) connect [{<a>} -> {<a = a - 1>}] | [{<a>, <b>} -> {<a>}] .. i; }"
          "connect i * {<a>} if <a == 0>;"}) {
        RunningNet run(net, 1, 8, {{"f", [](BoxCall& call) {
                                        const int a = std::get<int>(call.arguments()[0]);
                                        call.emit(1, std::vector<BoxValue>{a - 1});
                                    }}});
        const int depth = net.find("box") == std::string::npos ? kDepth : kDepth / 50;
        run.network().push(with({{kA, depth}}));
        run.network().push(with({{kA, 7}}));
        run.network().settle();
        EXPECT_EQ(run.values(kA), (std::vector<int>{0, 0})) << net;
        EXPECT_LT(run.network().part_count(), 5000u) << net;
    }
}

/// A stage that has fired does to a record what it would have done, also where it has been gone meanwhile.
TEST(StreamsReplicasTest, AStageThatIsGoneStillActs) {
    // <c> tells how many stages that have fired its record has come through.
    RunningNet run(
        "net n connect ([| {<b>}, {<a>} |] .. ([{<a>, <b>} -> {<a>}] | [{<c>} -> {<c = c + 1>}] | [])) * "
        "{<a>, "
        "<c>};");
    const Label c(LabelKind::kTag, "c");
    for (const int pairs : {3, 1, 0}) {
        run.network().push(with({{kA, 1}}));
        for (int i = 0; i < pairs; ++i) run.network().push(with({{kB, i}}));
        run.network().push(with({{kB, 1}, {c, 0}}));
    }
    run.network().settle();
    EXPECT_EQ(run.values(c), (std::vector<int>{3, 5, 6}));
    EXPECT_THAT(run.network().remarks(), IsEmpty());
}

/// Nor do records of one value, however many.
TEST(StreamsReplicasTest, AReplicaThatIsUsedAgainAndAgainTakesNoMemory) {
    if (kSanitized) GTEST_SKIP() << "skipped: sanitizers have a malloc of their own, which does not count";
    constexpr int kCount = 500'000;
    constexpr size_t kMost = size_t{1} << 20;  // a quarter of a pointer for each
    const auto program = parse(Source("test", "net n connect ([] .. [| {<a>}, {<b>} |] .. []) ! <k>;"));
    NetworkOptions options;
    options.output = [](const Record&) {};
    Network network(*program, std::move(options));
    size_t before = 0;
    for (int i = 0; i < kCount; ++i) {
        network.push(with({{i % 2 == 0 ? kA : kB, 1}, {kK, 1}}));
        if (i == 1000) before = allocated();
    }
    EXPECT_LT(allocated(), before + kMost);
}

/// A value whose cell has fired passes for ever, whatever came for its neighbours.
TEST(StreamsReplicasTest, CellsOfASplitFireOnce) {
    for (const char* net : {"net n connect [| {<a>}, {<b>} |] ! <k>;",
                            "net n connect ([] .. [| {<a>}, {<b>} |] .. []) ! <k>;"}) {
        RunningNet run(net);
        std::mt19937 random(7);
        std::vector<int> order(200);
        for (int i = 0; i < 200; ++i) order[static_cast<size_t>(i)] = i % 100 - 50;
        std::shuffle(order.begin(), order.end(), random);
        for (const int k : order) run.network().push(with({{kA, 1}, {kK, k}}));
        for (const int k : order) run.network().push(with({{kB, 2}, {kK, k}}));
        run.network().settle();
        // Of each value: one pair, the other <a> before it, the other <b> behind it.
        std::map<int, int> seen;
        for (const int k : run.values(kK)) ++seen[k];
        EXPECT_THAT(seen, SizeIs(100));
        for (const auto& [k, count] : seen) EXPECT_EQ(count, 3) << k;
    }
}

TEST(StreamsReplicasTest, WhatIsLeftInCellsOfAStarIsTold) {
    RunningNet run("net n connect [| {<a>}, {<b>} |] * {<a>, <b>};");
    for (int i = 0; i < 3; ++i) run.network().push(with({{kA, i}}));
    run.network().push(with({{kB, 0}}));
    run.network().settle();
    EXPECT_THAT(run.network().remarks(),
                ElementsAre("/n/*: 2 records came into 2 synchrocells that were not filled, and are lost"));
    RunningNet never("net n connect [| {<a>}, {<b>} |] * {<a>, <b>};");
    EXPECT_THAT(
        [&] {
            never.network().push(with({{kK, 1}}));
        },
        ThrowsMessage<Error>(HasSubstr("for ever: none takes it, and it is not {<a>, <b>}")));
    // One that fills each cell alone comes out of it as it was.
    RunningNet filling("net n connect [| {<a>, <k>}, {<b>} |] * {<a>, <b>, <k>} if <k > 0>;");
    filling.network().push(with({{kB, 1}}));
    const auto push = [&] { filling.network().push(with({{kA, 1}, {kK, 0}})); };
    EXPECT_THAT(push, ThrowsMessage<Error>(HasSubstr("for ever: each gives it back as it is")));
}

}  // namespace
}  // namespace heddle::streams
