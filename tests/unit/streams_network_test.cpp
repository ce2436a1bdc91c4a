// Networks in one process, with boxes in C++: order, bounds, failures.
#include "streams/network.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <thread>

#include "streams/parser.hpp"
#include "streams/routing_parts.hpp"
#include "support/running_net.hpp"
#include "support/seeds.hpp"

namespace heddle::streams {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

/// Takes and gives <a>, after a while that differs.
BoxFunction slow_box(uint64_t seed) {
    return [seed](BoxCall& call) {
        const int value = std::get<int>(call.arguments()[0]);
        std::mt19937_64 random(seed + static_cast<uint64_t>(value));
        volatile uint64_t work = random() % 4000;
        while (work > 0) work = work - 1;
        call.emit(1, std::vector<BoxValue>{value});
    };
}

class StreamsOrderTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, StreamsOrderTest, testing::Values(1, 2, 4));

/// One way through a network, and ordered combinators in each other, keep the order of what went in.
TEST_P(StreamsOrderTest, IsKeptWhereTheProgramAsksForIt) {
    const std::string boxes = "box f ((<a>) -> (<a>)); box g ((<a>) -> (<a>));";
    const uint64_t first = seeds(1).first;
    const std::string nets[] = {
        "net n connect f .. g;",
        "net n connect [{<a>} -> {<a>, <k = a % 3>}] .. f !! <k> .. [{<k>} -> {}];",
        "net n connect [{<a>} -> if <a % 2 == 0> then {<a>, <b>} else {<a>}] .. (([{<b>} -> {}] .. f) || g);",
        "net n connect [{<a>} -> {<a>, <k = a % 5>}] .. (f .. [{<k>} -> {<k = k - 1>}]) ** {<k>} if <k < 0>;",
        "net n connect [{<a>} -> {<a>, <k = a % 2>}] .. ((f !! <k>) || [{<b>} -> {}]) !! <k>;",
    };
    for (const std::string& net : nets) {
        RunningNet run(boxes + net, GetParam(), 4, {{"f", slow_box(first)}, {"g", slow_box(first + 1)}});
        for (int i = 0; i < 300; ++i) run.network().push(with({{kA, i}}));
        run.network().settle();
        EXPECT_EQ(run.values(kA), upto(300)) << net;
    }
}

/// Where a record has left and is still on its way, the next turn's must not overtake it.
TEST(StreamsTurnTest, ATurnIsNotOverBeforeItsRecordsHaveComeToRest) {
    const auto program = parse(Source("test", "net n connect [];"));
    Plant plant(*program, {});
    struct Exit final : Inlet {
        void take(Record&& record, Flow&) override {
            if (meanwhile) std::exchange(meanwhile, {})();
            seen.push_back(record.tag(kA));
        }
        std::function<void()> meanwhile;
        std::vector<int> seen;
    } exit;
    OrderedExit ordered(plant, exit, plant.path(nullptr, "n"));
    Record first = with({{kA, 0}}), second = with({{kA, 1}});
    first.turn = TurnReference(new Turn(ordered, 0, {}));
    second.turn = TurnReference(new Turn(ordered, 1, {}));
    exit.meanwhile = [&] {
        Flow other;
        other.run(ordered, std::move(second));
    };
    Flow flow;
    flow.run(ordered, std::move(first));
    plant.wait();
    EXPECT_THAT(exit.seen, ElementsAre(0, 1));
}

/// What a record does that had to wait for its turn is told as what any other does.
TEST(StreamsTurnTest, WhereARecordThatWaitedFailsTheOthersGoOn) {
    const auto program = parse(Source("test", "net n connect [];"));
    std::vector<std::string> letters;
    NetworkOptions options;
    options.dead_letter = [&](const Record&, const std::string& why) { letters.push_back(why); };
    Plant plant(*program, std::move(options));
    struct Exit final : Inlet {
        void take(Record&& record, Flow&) override {
            if (record.tag(kA) == 1) throw std::runtime_error("the disk is full");
            seen.push_back(record.tag(kA));
        }
        std::vector<int> seen;
    } exit;
    OrderedExit ordered(plant, exit, plant.path(nullptr, "n"));
    const auto bring = [&](uint64_t turn, int value) {
        Record record = with({{kA, value}});
        record.turn = TurnReference(new Turn(ordered, turn, {}));
        Flow flow;
        flow.run(ordered, std::move(record));
    };
    bring(1, 1);
    bring(2, 2);
    bring(0, 0);  // and the others are released
    plant.wait();
    EXPECT_TRUE(plant.pressure.quiet());
    bring(3, 3);
    plant.wait();
    EXPECT_THAT(exit.seen, ElementsAre(0, 2, 3));
    EXPECT_THAT(letters, ElementsAre("n: the disk is full"));
}

/// Runs what happens before a flow begins to wait.
struct Meanwhile final : Kept {
    explicit Meanwhile(std::function<void()> what) : what_happens(std::move(what)) {}
    void let_go() override { what_happens(); }
    std::function<void()> what_happens;
};

/// Its turn comes, and its record goes on, when it is about to wait for room: all others wait for it then.
TEST(StreamsTurnTest, WhoseTurnHasComeDoesNotWaitForRoom) {
    const auto program = parse(Source("test", "net n connect [];"));
    NetworkOptions options;
    options.queue_bound = 2;
    Plant plant(*program, std::move(options));
    struct Exit final : Inlet {
        void take(Record&& record, Flow&) override {
            seen.push_back(record.tag(kA));
            ++count;
        }
        std::vector<int> seen;
        std::atomic<int> count{0};
    } exit;
    OrderedExit ordered(plant, exit, plant.path(nullptr, "n"));
    const auto bring = [&](int turn, Kept* kept = nullptr) {
        Record record = with({{kA, turn}});
        record.turn = TurnReference(new Turn(ordered, static_cast<uint64_t>(turn), {}));
        Flow flow;
        if (kept != nullptr) flow.keep(*kept);
        flow.run(ordered, std::move(record));
    };
    plant.pressure.begin();
    // Where all wait, this one's bound grows, since it is the smallest.
    Pressure::Gauge smallest;
    smallest.bound = 1;
    smallest.counts = false;
    std::thread waits([&] {
        plant.pressure.begin();
        plant.pressure.wait(smallest, [] { return true; });
        plant.pressure.end();
    });
    bring(2);
    std::thread later;
    std::atomic<bool> has_come{false};
    Meanwhile comes([&] { has_come = true; });
    Meanwhile meanwhile([&] {
        later = std::thread([&] {
            plant.pressure.begin();
            bring(3, &comes);
            plant.pressure.end();
        });
        while (smallest.waiting == 0 || !has_come) std::this_thread::yield();
        bring(0);
        while (exit.count < 2) std::this_thread::yield();
    });
    bring(1, &meanwhile);
    later.join();
    EXPECT_EQ(smallest.bound, 1U);
    plant.pressure.emptied(smallest);
    plant.pressure.end();
    waits.join();
    plant.wait();
    EXPECT_THAT(exit.seen, ElementsAre(0, 1, 2, 3));
}

/// Who waits for order may hold up all others by it: more room there is no queue that had to grow.
TEST(StreamsTurnTest, WhereAllWaitOrderHasMoreRoomFirst) {
    Pressure pressure;
    Pressure::Gauge queue, order;
    queue.bound = 1;
    order.bound = 8;
    order.counts = false;
    pressure.begin();
    const auto wait = [&](Pressure::Gauge& gauge, const std::function<void()>& then) {
        pressure.begin();
        pressure.wait(gauge, [] { return true; });
        then();
        pressure.end();
    };
    std::thread first([&] { wait(queue, [] {}); });
    std::thread second([&] { wait(order, [&] { pressure.emptied(queue); }); });
    while (queue.waiting == 0 || order.waiting == 0) std::this_thread::yield();
    pressure.end();
    first.join();
    second.join();
    EXPECT_EQ(order.bound, 16U);
    EXPECT_EQ(pressure.growths(), 0U);
}

/// A box that sends more than fits waits, in the midst of its call.
TEST(StreamsNetworkTest, ABurstWaitsForTheBoxBehindIt) {
    constexpr int kCount = 20'000;
    std::atomic<int> sent{0}, taken{0}, most{0};
    const BoxFunction burst = [&](BoxCall& call) {
        for (int i = 0; i < kCount; ++i) {
            call.emit(1, std::vector<BoxValue>{i});
            ++sent;
        }
    };
    const BoxFunction sink = [&](BoxCall& call) {
        const int waiting = sent - taken++;
        most = std::max(most.load(), waiting);
        call.emit(1, call.arguments());
    };
    RunningNet run("box burst ((<b>) -> (<a>)); box sink ((<a>) -> (<a>)); net n connect burst .. sink;", 2,
                   16, {{"burst", burst}, {"sink", sink}});
    run.network().push(with({{kB, 1}}));
    run.network().settle();
    EXPECT_EQ(run.values(kA), upto(kCount));
    EXPECT_LE(most, 16 + 16 + 2);  // a queue, what was taken out of it at once, and one on either side
    EXPECT_THAT(run.network().remarks(), IsEmpty());
}

/// Each record comes back twice: the queue before the box must grow, and what is told of it.
TEST(StreamsNetworkTest, ALoopThatIsFullGrows) {
    const BoxFunction twice = [](BoxCall& call) {
        const int value = std::get<int>(call.arguments()[0]);
        for (int i = 0; i < 2; ++i) call.emit(1, std::vector<BoxValue>{value - 1});
    };
    for (const int workers : {1, 2}) {
        RunningNet run("box twice ((<a>) -> (<a>)); net n connect twice \\ {<a>} if <a != 0>;", workers, 2,
                       {{"twice", twice}});
        run.network().push(with({{kA, 10}}));
        run.network().settle();
        EXPECT_THAT(run.values(kA), SizeIs(1024));
        EXPECT_THAT(run.network().remarks(), ElementsAre(HasSubstr("full by its construction")));
    }
}

TEST(StreamsNetworkTest, TheFirstFailureStopsItAndIsTold) {
    RunningNet run("net n ({<a>, <b>} -> {<a>}) connect [{<a>, <b>} -> {<a = a / b>}];");
    run.network().push(with({{kA, 6}, {kB, 3}}));
    EXPECT_THAT(
        [&] {
            run.network().push(with({{kA, 6}, {kB, 0}}));
        },
        ThrowsMessage<Error>(HasSubstr("/n/[filter]: 6 divided by zero")));
    run.network().push(with({{kA, 8}, {kB, 4}}));  // goes nowhere
    run.network().settle();
    EXPECT_THAT(run.values(kA), ElementsAre(2));
}

TEST(StreamsNetworkTest, WithDeadLettersTheOthersGoOn) {
    const BoxFunction odd = [](BoxCall& call) {
        const int value = std::get<int>(call.arguments()[0]);
        if (value % 2 == 0) throw std::runtime_error("even");
        call.emit(value == 3 ? 7u : 1u, std::vector<BoxValue>{value});
    };
    RunningNet run("box odd ((<a>) -> (<a>)); net n connect odd;", 2, 8, {{"odd", odd}}, true);
    for (int i = 0; i < 6; ++i) run.network().push(with({{kA, i}}));
    run.network().push(with({{kB, 1}}));
    run.network().settle();
    EXPECT_THAT(run.values(kA), ElementsAre(1, 5));
    EXPECT_THAT(run.letters(), SizeIs(5));
    EXPECT_THAT(run.letters(), testing::Contains(HasSubstr("variant 7: it has declared 1")));
    EXPECT_THAT(run.letters(), testing::Contains(HasSubstr("{<b=1>} cannot go on here: {<a>} is wanted")));
}

/// What waits at the borders of the nets around is a part of it.
TEST(StreamsNetworkTest, ADeadLetterIsTheRecordAsItCame) {
    const auto program = parse(Source("test",
                                      "net n ({<a>, <k>} -> {<a>}) { net m ({<a>} -> {<a>}) connect "
                                      "[{<a>} -> {<a = 1 / a>}]; } connect m;"));
    const Label besides(LabelKind::kField, "besides");
    std::vector<std::string> letters;
    NetworkOptions options;
    options.boxes = [](const BoxDefinition&) { return BoxFunction(); };
    options.output = [](const Record&) {};
    options.dead_letter = [&](const Record& record, const std::string&) { letters.push_back(record.text()); };
    Network network(*program, std::move(options));
    Record record = with({{kA, 0}, {kK, 5}});
    record.set(besides, std::make_shared<TextField>("", "text"));
    network.push(std::move(record));
    network.settle();
    EXPECT_THAT(letters, ElementsAre("{besides, <a=0>, <k=5>}"));
}

/// A record that cannot go on leaves nothing behind: neither those that it has made already, nor itself in a
/// cell.
TEST(StreamsNetworkTest, ARecordThatFailsHasDoneNothing) {
    struct Case {
        const char* net;
        std::vector<int> out;
    };
    for (const Case& one :
         {Case{"net n connect [{<a>, <b>} -> {<a>}; {<a = a / b>}];", {6, 3}},
          Case{"net n connect [| {<a>, <b>}, {<b>} if <6 / b > 0> |];", {6}},
          Case{"net n connect [| {<a>, <b>}, {<b>} if <6 / b > 0> |] ! <k>;", {6}},
          Case{"net n connect [| {<a>, <b>}, {<b>} if <6 / b > 0> |] * {<b>} if <b == 2>;", {6}}}) {
        RunningNet run(one.net, 2, 8, {}, true);
        run.network().push(with({{kA, 7}, {kB, 0}, {kK, 1}}));
        run.network().settle();
        EXPECT_THAT(run.values(kA), IsEmpty()) << one.net;
        EXPECT_THAT(run.letters(), ElementsAre(HasSubstr("divided by zero"))) << one.net;
        EXPECT_THAT(run.network().remarks(), IsEmpty()) << one.net;
        run.network().push(with({{kA, 6}, {kB, 2}, {kK, 1}}));
        run.network().settle();
        EXPECT_EQ(run.values(kA), one.out) << one.net;
    }
}

/// A replica that cannot be made is its record's failure, and nobody else's; the next one may succeed.
TEST(StreamsNetworkTest, AReplicaThatCannotBeMadeIsTold) {
    for (const std::string net :
         {"inner ! <k>", "(inner .. [| {<a>}, {<b>} |]) ! <k>", "inner * {<a>, <k>} if <k == 1>"}) {
        const auto program = parse(Source(
            "test", "net n { net inner connect [{<a>, <k>} -> {<a>, <k = 1>}]; } connect " + net + ";"));
        for (const auto& definition : program->main().nets) definition->metadata.emplace("observer", "x");
        std::vector<std::string> letters;
        int left = 0, made = 0;
        NetworkOptions options;
        options.workers = 2;
        options.boxes = [](const BoxDefinition&) { return BoxFunction(); };
        options.output = [&](const Record&) { ++left; };
        options.dead_letter = [&](const Record& record, const std::string& why) {
            letters.push_back(record.text() + why);
        };
        options.observers = [&](const std::string&, const Metadata&) -> Observe {
            if (made++ < 2) throw std::runtime_error("the disk is full");
            return [](const Record&, bool) {};
        };
        Network network(*program, std::move(options));
        for (int i = 0; i < 4; ++i) network.push(with({{kA, i}, {kK, 5}}));
        network.settle();
        EXPECT_THAT(letters, ElementsAre(testing::AllOf(HasSubstr("<a=0>"), HasSubstr("the disk is full")),
                                         testing::AllOf(HasSubstr("<a=1>"), HasSubstr("the disk is full"))))
            << net;
        EXPECT_EQ(left, net.find("[|") == std::string::npos ? 2 : 1) << net;
    }
}

/// A letter that cannot be written ends the run, whether a task writes it or the one who pushes.
TEST(StreamsNetworkTest, WithoutRoomForDeadLettersItStops) {
    const auto program = parse(Source("test", "box odd ((<a>) -> (<a>)); net n connect odd;"));
    for (const Label label : {kA, kB}) {
        NetworkOptions options;
        options.boxes = [](const BoxDefinition&) -> BoxFunction {
            return [](BoxCall&) { throw std::runtime_error("odd"); };
        };
        options.output = [](const Record&) {};
        options.dead_letter = [](const Record&, const std::string&) {
            throw std::runtime_error("there is no room for letters");
        };
        Network network(*program, std::move(options));
        EXPECT_THAT(
            [&] {
                network.push(with({{label, 0}}));
                network.settle();
            },
            ThrowsMessage<std::runtime_error>("there is no room for letters"));
        network.push(with({{label, 1}}));
        network.settle();
        EXPECT_EQ(network.dropped(), 1U);
    }
}

/// Also where the part that would call it is made for the first record that comes there.
TEST(StreamsNetworkTest, AMissingBoxIsToldBeforeARecordComes) {
    for (const char* net : {"f ! <k>", "[] .. f * {<b>}", "m", "f"}) {
        const auto program = parse(Source(
            "test", "box f ((<a>) -> (<a>)); net m ({<a>} -> {<a>}) connect [] | f .. m; net n connect " +
                        std::string(net) + ";"));
        NetworkOptions options;
        options.boxes = [](const BoxDefinition& box) -> BoxFunction {
            throw Error(ErrorCode::kBadInput, "there is no " + box.name);
        };
        EXPECT_THAT([&] { Network(*program, options); }, ThrowsMessage<Error>(HasSubstr("there is no f")))
            << net;
    }
    const auto declared = parse(Source("test", "net m; net n connect m ! <k>;"));
    EXPECT_THAT([&] { Network(*declared, {}); },
                ThrowsMessage<Error>(HasSubstr("test:1:5: the net \"m\" is only")));
}

TEST(StreamsNetworkTest, BindingTagsDecideAndAreNotInherited) {
    const Label binding(LabelKind::kBindingTag, "b");
    RunningNet run("net n connect [{<#b>} -> {<b = #b>}] | [{<a>} -> {<a>, <k = 1>}];");
    Record bound = with({{kA, 1}});
    bound.set(binding, 5);
    run.network().push(bound);
    run.network().push(with({{kA, 2}}));
    run.network().settle();
    EXPECT_THAT(run.values(kB), ElementsAre(5, -1));
    EXPECT_THAT(run.values(kA), ElementsAre(1, 2));
    EXPECT_THAT(run.values(binding), ElementsAre(-1, -1));
}

}  // namespace
}  // namespace heddle::streams
