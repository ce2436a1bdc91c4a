// Networks composed in C++ (heddle/streams.hpp): what S-Net's words are, types, order, waiting, failures.
#include <gmock/gmock.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "heddle/pause.hpp"
#include "heddle/streams.hpp"
#include "heddle/task.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"

namespace heddle::snet {
namespace {

using namespace test;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

using A = Tag<"a">;
using B = Tag<"b">;
using Number = Field<"number", long>;
using Text = Field<"text", std::string>;
using Only = Field<"only", std::unique_ptr<int>>;

Net plus_one(const std::string& name = "plus_one") {
    return box<In<Number>, Out<Number>>(name, [](long number) { return number + 1; });
}

std::vector<Record> all_of(Network& network) {
    std::vector<Record> all;
    while (std::optional<Record> one = network.pull()) all.push_back(std::move(*one));
    return all;
}

std::vector<int> outcome(const Net& net, const std::vector<int>& values, NetworkOptions options = {}) {
    Network network(net, std::move(options));
    for (const int value : values) network.push(record<A>(value));
    network.close();
    std::vector<int> out;
    for (const Record& one : all_of(network)) out.push_back(one.get<A>());
    return out;
}

std::vector<int> upto(int count) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i) all.push_back(i);
    return all;
}

TEST(StreamsCompositionTest, ANetIsTheProgramThatItsCombinatorsSay) {
    const Net f = box<In<A>, Out<A, Text>, Out<>>("f", [](auto& emit, int) { emit(Out<>()); });
    const Net g = box<In<Text>, Out<A>>("g", [](const std::string&) { return 1; });
    EXPECT_EQ(((f >> g) || filter("{<b>} -> {<b = b - 1>}")).text(),
              "box f ((<a>) -> (<a>, text) | ());\n"
              "box g ((text) -> (<a>));\n"
              "net network connect ((f .. g) || [{<b>} -> {<b = b - 1>}]);\n");
    const Net inner = net<In<A>, Out<A>>("inner", star(f, {when<A>("a > 3"), when<B>()}));
    EXPECT_EQ(inner.text(),
              "box f ((<a>) -> (<a>, text) | ());\n"
              "net inner ({<a>} -> {<a>}) connect (f * {<a>} if <a > 3>, {<b>});\n"
              "net network connect inner;\n");
    EXPECT_THAT(
        ordered_split<A>(feedback(g, {when<A>("a < 0")}) | synchronize({when<A>(), when<B>()})).text(),
        HasSubstr("connect (((g \\ {<a>} if <a < 0>) | [|{<a>}, {<b>}|]) !! <a>);"));
}

TEST(StreamsCompositionTest, AChoiceMayBeWide) {
    Net all = filter("{<b>} -> {<b>}"), ordered = all;
    for (int i = 0; i < 400; ++i) {
        const Net one = filter("{<a>, <c" + std::to_string(i) + ">} -> {<a>}");
        all = i % 2 == 0 ? all | one : one | all;
        ordered = ordered || one;
    }
    EXPECT_THAT(outcome(all | filter("{<a>} -> {<a = a + 1>}"), {1}), ElementsAre(2));
    EXPECT_THAT(outcome(ordered || filter("{<a>} -> {<a = a + 1>}"), {1}), ElementsAre(2));
}

/// A pipeline may have any number of parts, however they were put together.
TEST(StreamsCompositionTest, APipelineMayBeLong) {
    constexpr int kParts = 500;
    const Net more = filter("{<a>} -> {<a = a + 1>}");
    Net left = more, right = more;
    for (int i = 1; i < kParts; ++i) left = left >> more;
    for (int i = 1; i < kParts; ++i) right = more >> right;
    EXPECT_EQ(left.text(), right.text());
    EXPECT_THAT(outcome(left >> right, {0, 5}), ElementsAre(2 * kParts, 2 * kParts + 5));
    EXPECT_THAT(
        (star(more >> more, {when<A>("a > 3")}) >> more).text(),
        HasSubstr(
            "connect ((([{<a>} -> {<a = a + 1>}] .. [{<a>} -> {<a = a + 1>}]) * {<a>} if <a > 3>) .. ["));
}

TEST(StreamsCompositionTest, FunctionsTakeAndGiveValuesInManyWays) {
    const Net all =
        box<In<A>, Out<Text, Only>>(
            "make", [](int a) { return std::tuple(std::to_string(a), std::make_unique<int>(a)); }) >>
        // By value, by reference, shared, and as what it converts to.
        box<In<Only, Text>, Out<Only, Text>>("move",
                                             [](std::unique_ptr<int> only, std::string text) {
                                                 ++*only;
                                                 return std::tuple(std::move(only), text + "!");
                                             }) >>
        box<In<Only, Text>, Out<Number, Text>>(
            "look",
            [](const std::unique_ptr<int>& only, const std::shared_ptr<const std::string>& text) {
                return std::tuple(long{*only}, *text);
            }) >>
        box<In<Text, Number>, Out<Text>>("join", [](std::string_view text, double number) {
            return std::optional(std::string(text) + std::to_string(static_cast<int>(number)));
        });
    Network network(all);
    network.push(record<A>(6));
    network.close();
    EXPECT_EQ(network.pull()->get<Text>(), "6!7");
    EXPECT_FALSE(network.pull());
}

TEST(StreamsCompositionTest, AnEmptyOptionalIsAValueOfAFieldOfSuch) {
    using Perhaps = Field<"perhaps", std::optional<int>>;
    Network network(box<In<A>, Out<Perhaps>>(
        "f", [](int a) { return a > 0 ? std::optional<int>(a) : std::optional<int>(); }));
    for (int a = 0; a < 2; ++a) network.push(record<A>(a));
    network.close();
    EXPECT_EQ(network.pull()->get<Perhaps>(), std::nullopt);
    EXPECT_EQ(network.pull()->get<Perhaps>(), std::optional<int>(1));
    EXPECT_FALSE(network.pull());
}

TEST(StreamsCompositionTest, AFieldIsMovedThroughAPipelineAndNeverCopied) {
    struct Counted {
        explicit Counted(int* its_copies) : copies(its_copies) {}
        Counted(const Counted& other) : copies(other.copies) { ++*copies; }
        Counted(Counted&&) = default;
        Counted& operator=(Counted&&) = default;
        int* copies;
    };
    using Value = Field<"value", Counted>;
    int copies = 0;
    const auto through = [](Counted value) { return value; };
    Network network(box<In<Value>, Out<Value>>("f", through) >> box<In<Value>, Out<Value>>("g", through));
    network.push(record<Value>(Counted(&copies)));
    network.close();
    std::optional<Record> out = network.pull();
    const Counted taken = out->take<Value>();
    EXPECT_EQ(copies, 0);
    EXPECT_FALSE(out->has<Value>());
    EXPECT_EQ(taken.copies, &copies);
}

/// What two records have can be looked at by both, and belongs to neither.
TEST(StreamsCompositionTest, WhatIsSharedIsCopiedOrRefused) {
    const Net twice = filter("{only, text} -> {only, text}; {only, text}");
    const Net take = box<In<Only, Text>, Out<A>>(
        "take", [](std::unique_ptr<int>, std::string text) { return static_cast<int>(text.size()); });
    std::vector<std::string> letters;
    NetworkOptions options;
    options.dead_letter = [&](const Record& record, const std::string& why) {
        EXPECT_EQ(record.get<Text>(), "four");
        letters.push_back(why);
    };
    Network network(twice >> take, options);
    network.push(record<Only, Text>(std::make_unique<int>(1), "four"));
    network.close();
    EXPECT_THAT(all_of(network), SizeIs(1));
    EXPECT_THAT(letters, testing::Contains(HasSubstr("the field only is shared by several records, and a "
                                                     "std::unique_ptr")));
}

TEST(StreamsCompositionTest, WhatABoxDoesNotNameGoesAroundIt) {
    Network network(plus_one());
    network.push(record<Number, Text, A>(1, "kept", 7));
    network.close();
    const std::optional<Record> out = network.pull();
    EXPECT_EQ(out->get<Number>(), 2);
    EXPECT_EQ(out->get<Text>(), "kept");
    EXPECT_EQ(out->get<A>(), 7);
    EXPECT_THAT([&] { (void)out->get<B>(); }, ThrowsMessage<Error>(HasSubstr("has no <b>")));
}

TEST(StreamsCompositionTest, CombinatorsDoWhatSNetSays) {
    const Net countdown = filter("{<a>} -> {<a = a - 1>}");
    EXPECT_THAT(outcome(star(countdown, {when<A>("a <= 0")}), {3, 5, -2}), ElementsAre(0, 0, -2));
    EXPECT_THAT(outcome(feedback(countdown, {when<A>("a > 0")}), {3, 100'000}), ElementsAre(0, 0));
    EXPECT_THAT(outcome(filter("{<a>} -> if <a == 1> then {<a>, <b>} else {<a>}") >>
                            (filter("{<b>, <a>} -> {<a = a * 10>}") || identity()),
                        {1, 2}),
                ElementsAre(10, 2));
    EXPECT_THAT(outcome(ordered_split<A>(net<In<A>, Out<A>>("inner", countdown)), {7, 8, 7}),
                ElementsAre(6, 7, 6));
    Network pairs(synchronize({when<A>(), when<B>()}));
    pairs.push(record<A>(1));
    pairs.push(record<B>(2));
    pairs.close();
    EXPECT_EQ(all_of(pairs).at(0).text(), "{<a=1>, <b=2>}");
}

TEST(StreamsCompositionTest, WhatDoesNotBelongTogetherIsToldAtOnce) {
    const Net other = box<In<Field<"number", int>>, Out<A>>("other", [](int number) { return number; });
    EXPECT_THAT([&] { (void)(plus_one() >> other); },
                ThrowsMessage<Error>("the field number holds long in the box \"plus_one\" and int in the box "
                                     "\"other\""));
    EXPECT_THAT([&] { (void)(plus_one() | plus_one()); },
                ThrowsMessage<Error>(HasSubstr("two boxes are called \"plus_one\"")));
    EXPECT_THAT([&] { (void)filter("{<a>} -> {<a = z>}"); }, ThrowsMessage<Error>(HasSubstr("filter:1:")));
    EXPECT_THAT(
        [&] {
            (void)when<A>("a +");
            (void)star(identity(), {when<A>("a +")});
        },
        ThrowsMessage<Error>(HasSubstr("pattern:1:")));
    EXPECT_THAT([&] { (void)filter("{a} -> {b = a}] .. [{c} -> {d = c}"); },
                ThrowsMessage<Error>(HasSubstr("more than one filter")));
    EXPECT_THAT([&] { (void)star(identity(), {when<A>("a > 0> .. [{<a>} -> {}] * {<a>} if <a > 1")}); },
                ThrowsMessage<Error>(HasSubstr("more than one pattern")));
    EXPECT_THAT([&] { (void)plus_one("not a name"); }, ThrowsMessage<Error>(HasSubstr("box:1:")));
    EXPECT_THAT([&] { Network(net<In<A>, Out<B>>("inner", identity())); },
                ThrowsMessage<Error>(HasSubstr("network:1:")));
    const Net promises = net<In<A>, Out<B>>("inner", identity());
    EXPECT_THAT(promises.check(), SizeIs(1));
    EXPECT_THAT(plus_one().check(), IsEmpty());
}

TEST(StreamsCompositionTest, AValueOfAnotherTypeIsToldWithItsPlace) {
    Network network(plus_one());
    // Where a worker was quick, push() tells it.
    const auto push_and_pull = [&] {
        network.push(record<Field<"number", float>>(1.5F));
        (void)network.pull();
    };
    EXPECT_THAT(push_and_pull,
                ThrowsMessage<Error>("/network/plus_one: the field number holds float, not long (the record "
                                     "{number})"));
    EXPECT_FALSE(network.pull());  // it is over
}

TEST(StreamsCompositionTest, ABoxThatThrowsStopsItOrNot) {
    const Net odd = box<In<A>, Out<A>>("odd", [](int a) {
        if (a % 2 == 0) throw std::runtime_error("even");
        return a;
    });
    Network stops(odd);
    const auto push_and_pull = [&] {
        stops.push(record<A>(2));
        stops.close();
        (void)stops.pull();
    };
    EXPECT_THAT(push_and_pull, ThrowsMessage<Error>("/network/odd: even (the record {<a=2>})"));
    std::vector<std::string> letters;
    NetworkOptions options;
    options.dead_letter = [&](const Record& record, const std::string& why) {
        letters.push_back(record.text() + " " + why);
    };
    EXPECT_THAT(outcome(odd, {1, 2, 3, 4}, options), ElementsAre(1, 3));
    EXPECT_THAT(letters, ElementsAre("{<a=2>} /network/odd: even", "{<a=4>} /network/odd: even"));
}

TEST(StreamsCompositionTest, ADeadLetterIsNobodyElses) {
    using P = Field<"p", std::unique_ptr<int>>;
    const Net refuses = box<In<A>, Out<A>>("refuses", [](int) -> int { throw std::runtime_error("no"); });
    std::vector<std::unique_ptr<int>> kept;
    NetworkOptions options;
    options.dead_letter = [&](Record one, const std::string&) { kept.push_back(one.take<P>()); };
    Network network(refuses, options);
    network.push(record<P, A>(std::make_unique<int>(7), 0));
    network.close();
    EXPECT_FALSE(network.pull());
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(*kept[0], 7);
}

/// Both calls are inside at the same time: the first one ends in the second.
TEST(StreamsCompositionTest, ABoxIsCalledSeveralTimesAtOnceAndOrderIsKeptWhereItIsAskedFor) {
    for (const bool ordered : {true, false}) {
        BlockCondition second_is_inside;
        const Net wait = box<In<A>, Out<A>>("wait",
                                            [&](int a) {
                                                if (a == 0) second_is_inside.block();
                                                if (a == 1) second_is_inside.signal();
                                                return a;
                                            },
                                            {.calls = 2, .ordered = ordered});
        NetworkOptions options;
        options.workers = 2;
        std::vector<int> out = outcome(wait, upto(500), options);
        if (!ordered) std::sort(out.begin(), out.end());
        EXPECT_EQ(out, upto(500));
    }
}

/// The first record is the slowest: what comes behind it piles up before the exit, but no further than bounds
/// say.
TEST(StreamsCompositionTest, WhatWaitsForItsTurnIsBounded) {
    constexpr int kCount = 2000;
    std::atomic<int> called{0};
    const Net net = box<In<A>, Out<A>>("first_is_slow",
                                       [&](int a) {
                                           if (a > 0) {
                                               ++called;
                                           } else {
                                               // Until nothing moves any more, or what should not be has
                                               // happened.
                                               for (int last = -1; called != last && called < kCount - 1;) {
                                                   last = called;
                                                   std::this_thread::sleep_for(50ms);
                                               }
                                               EXPECT_LT(called, 100);
                                           }
                                           return a;
                                       },
                                       {.calls = 2, .ordered = true});
    NetworkOptions options;
    options.workers = 2;
    options.queue_bound = 16;
    EXPECT_EQ(outcome(net, upto(kCount), options), upto(kCount));
}

/// Of those that have ended without a record.
TEST(StreamsCompositionTest, TurnsThatEndBehindASlowOneTakeNoMemory) {
    if (kSanitized) GTEST_SKIP() << "skipped: sanitizers have a malloc of their own, which does not count";
    constexpr int kCount = 200'000;
    std::atomic<bool> ended{false};
    NetworkOptions options;
    options.workers = 2;
    options.output = [](const Record&) {};
    Network network(box<In<A>, Out<A>>("all_but_the_first_are_dropped",
                                       [&](int a) -> std::optional<int> {
                                           while (a == 0 && !ended) std::this_thread::yield();
                                           return a == 0 ? std::optional<int>(a) : std::nullopt;
                                       },
                                       {.calls = 2, .ordered = true}),
                    options);
    const auto allocated = [] {
        const struct mallinfo2 info = ::mallinfo2();
        return info.uordblks + info.hblkhd;
    };
    size_t before = 0;
    for (int i = 0; i < kCount; ++i) {
        network.push(record<A>(i));
        if (i == 1000) before = allocated();
    }
    EXPECT_LT(allocated(), before + (size_t{1} << 20));
    ended = true;
}

/// One thread that pushes all and then pulls all does not wait for itself.
TEST(StreamsCompositionTest, OneThreadMayPushAndThenPull) {
    NetworkOptions options;
    options.queue_bound = 4;
    options.output_bound = 4;
    EXPECT_EQ(outcome(box<In<A>, Out<A>>("same", [](int a) { return a; }), upto(3000), options), upto(3000));
}

/// With a thread that pulls, no more than the bounds is under way.
TEST(StreamsCompositionTest, WhoPushesWaitsForWhoPulls) {
    constexpr int kCount = 20'000;
    NetworkOptions options;
    options.queue_bound = 16;
    options.output_bound = 16;
    Network network(box<In<A>, Out<A>>("same", [](int a) { return a; }), options);
    network.push(record<A>(0));
    std::atomic<int> pushed{1}, pulled{0};
    int most = 0;
    std::jthread puller([&] {
        while (const std::optional<Record> one = network.pull()) {
            EXPECT_EQ(one->get<A>(), pulled);
            ++pulled;
            most = std::max(most, pushed - pulled);
        }
    });
    ASSERT_TRUE(becomes_true([&] { return pulled > 0; }, 60s));
    for (int i = 1; i < kCount; ++i) {
        network.push(record<A>(i));
        ++pushed;
    }
    network.close();
    puller.join();
    EXPECT_EQ(pulled, kCount);
    // Two queues, what was taken out of each at once, and one with each of the three.
    EXPECT_LE(most, 4 * 16 + 3);
}

/// One worker runs the task that pulls, the one that pushes, and the boxes of another network: what waits is
/// paused.
TEST(StreamsCompositionTest, TasksThatPushAndPullArePaused) {
    Runtime runtime({"native", {}, 1});
    NetworkOptions options;
    options.workers = 1;
    options.queue_bound = 2;
    options.output_bound = 2;
    Network network(plus_one(), options);
    Sequence sequence(runtime);
    long sum = 0;
    sequence.insert([&] {
        while (const std::optional<Record> one = network.pull()) sum += one->get<Number>();
    });
    sequence.insert([&] {
        for (long i = 0; i < 1000; ++i) network.push(record<Number>(i));
        network.close();
    });
    sequence.wait();
    EXPECT_EQ(sum, 1000 * 999 / 2 + 1000);
}

TEST(StreamsCompositionTest, SettleWaitsForWhatIsUnderWayWhetherOrNotItIsPulled) {
    NetworkOptions options;
    options.output_bound = 2;
    Network network(plus_one(), options);
    for (long i = 0; i < 100; ++i) network.push(record<Number>(i));
    network.settle();
    for (long i = 0; i < 100; ++i) EXPECT_EQ(network.try_pull()->get<Number>(), i + 1);
    EXPECT_FALSE(network.try_pull());
}

/// Records that are dropped, in queues and on their way, are gone; who waits is woken.
TEST(StreamsCompositionTest, CancelDropsAndWakes) {
    struct Alive {
        explicit Alive(std::atomic<int>& its_count) : count(&its_count) { ++*count; }
        Alive(Alive&& other) noexcept : count(other.count) { ++*count; }
        ~Alive() { --*count; }
        std::atomic<int>* count;
    };
    using Value = Field<"value", Alive>;
    std::atomic<int> alive{0};
    {
        NetworkOptions options;
        options.queue_bound = 4;
        options.output_bound = 4;
        std::atomic<bool> go{false};
        Network network(box<In<Value>, Out<Value>>("held",
                                                   [&](Alive value) {
                                                       go.wait(false);
                                                       return value;
                                                   }),
                        options);
        std::jthread pusher([&] {
            for (int i = 0; i < 100; ++i) network.push(record<Value>(Alive(alive)));
        });
        std::jthread puller([&] { EXPECT_FALSE(network.pull()); });
        EXPECT_TRUE(becomes_true([&] { return alive >= 4; }, 60s));
        network.cancel();
        go = true;
        go.notify_all();
    }
    EXPECT_EQ(alive, 0);
}

TEST(StreamsCompositionTest, RecordsLeaveToAFunctionWhereThereIsOne) {
    std::vector<int> out;
    NetworkOptions options;
    options.output = [&](const Record& record) { out.push_back(record.get<A>()); };
    Network network(filter("{<a>} -> {<a = a + 1>}"), options);
    for (int i = 0; i < 3; ++i) network.push(record<A>(i));
    network.settle();
    EXPECT_THAT(out, ElementsAre(1, 2, 3));
    EXPECT_THAT([&] { (void)network.pull(); }, ThrowsMessage<Error>(HasSubstr("output function")));
    network.close();
    EXPECT_THAT([&] { network.push(record<A>(1)); }, ThrowsMessage<Error>(HasSubstr("was closed")));
}

TEST(StreamsCompositionTest, TheOutputFunctionMayPushIntoTheNetworkThatItHearsOf) {
    std::vector<int> out;
    Network* own = nullptr;
    NetworkOptions options;
    options.output = [&](const Record& one) {
        const int a = one.get<A>();
        out.push_back(a);
        if (a < 5) own->push(record<A>(a));
    };
    Network network(filter("{<a>} -> {<a = a + 1>}"), options);
    own = &network;
    network.push(record<A>(0));
    network.settle();
    EXPECT_THAT(out, ElementsAre(1, 2, 3, 4, 5));
}

TEST(StreamsCompositionTest, DeadLettersMayBePushedAgain) {
    std::vector<int> failed;
    Network* own = nullptr;
    NetworkOptions options;
    options.output = [](const Record&) {};
    options.dead_letter = [&](const Record& one, const std::string&) {
        failed.push_back(one.get<A>());
        if (failed.size() < 4) own->push(record<A>(0));
    };
    Network network(filter("{<a>} -> {<a = 10 / a>}"), options);
    own = &network;
    network.push(record<A>(0));
    network.settle();
    EXPECT_THAT(failed, ElementsAre(0, 0, 0, 0));
}

/// Who pushes is told by its push, and does not close.
TEST(StreamsCompositionTest, AFailureWakesWhoPulls) {
    for (int round = 0; round < 20; ++round) {
        Network network(filter("{<a>} -> {<a = 10 / a>}"));
        std::jthread pulls([&] {
            try {
                (void)network.pull();
            } catch (const Error&) {  // it may be the one that is told
            }
        });
        if (round % 2 == 0) std::this_thread::sleep_for(1ms);
        try {
            network.push(record<A>(0));
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("zero"));
        }
    }
}

}  // namespace
}  // namespace heddle::snet
