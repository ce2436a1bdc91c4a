// Networks that end by their types but not by their values: each comes to a limit that has a name.
#include <gmock/gmock.h>

#include <map>
#include <optional>

#include "heddle/error.hpp"
#include "streams/network.hpp"
#include "streams/parser.hpp"

namespace heddle::streams {
namespace {

using testing::HasSubstr;

const Label kA(LabelKind::kTag, "a");

struct Ended {
    std::string failure;  ///< empty: none
    std::vector<std::string> letters;
    int left = 0;
};

/// Sends records with <a> = 0, 1, 2 through it: of 1 there is no end. A box "f" sends its record twice.
Ended run(const std::string& net, NetworkOptions options, bool letters = false) {
    const auto program = parse(Source("test", "box f ((<a>) -> (<a>)); net n connect " + net + ";"));
    Ended ended;
    options.workers = 2;
    options.boxes = [](const BoxDefinition&) -> BoxFunction {
        return [](BoxCall& call) {
            const std::vector<BoxValue> values{call.arguments()[0]};
            for (int i = 0; i < 2; ++i) call.emit(1, values);
        };
    };
    options.output = [&](Record) { ++ended.left; };
    if (letters)
        options.dead_letter = [&](const Record&, const std::string& why) { ended.letters.push_back(why); };
    try {
        Network network(*program, std::move(options));
        for (int i = 0; i < 3; ++i) {
            Record record;
            record.set(kA, i);
            network.push(std::move(record));
        }
        network.settle();
    } catch (const Error& error) {
        ended.failure = error.what();
    }
    return ended;
}

TEST(StreamsLimitsTest, ARecordGoesBackSoOftenAtMost) {
    NetworkOptions options;
    options.most_turns = 1000;
    EXPECT_THAT(run("[{<a>} -> {<a>}] \\ {<a>} if <a == 1>", options).failure,
                HasSubstr("has gone back 1000 times, and none may more often"));
    // The others go on.
    const Ended ended = run("[{<a>} -> {<a>}] \\ {<a>} if <a == 1>", options, true);
    EXPECT_EQ(ended.failure, "");
    EXPECT_EQ(ended.left, 2);
    ASSERT_EQ(ended.letters.size(), 1U);
    EXPECT_THAT(ended.letters[0], HasSubstr("gone back 1000 times"));
    // One turn less than too many is none.
    options.most_turns = 3;
    EXPECT_EQ(run("[{<a>} -> {<a = a + 1>}] \\ {<a>} if <a < 4>", options).failure, "");
}

/// What waits around each net, turns or labels put aside, ends in the net within: thousands one after the
/// other, on the stack of a box.
TEST(StreamsLimitsTest, NetsAreNestedMoreDeeplyThanAStackIs) {
    const Label n(LabelKind::kTag, "n"), besides(LabelKind::kField, "besides");
    for (const char* choice : {"|", "||"}) {
        const auto program = parse(Source(
            "test",
            std::string("box f ((<n>) -> (<n>));\n"
                        "net deep ({<n>} -> {<done>}) connect f .. [{<n>} -> if <n == 0> then {<done>} "
                        "else {<n = n - 1>}] .. ([{<done>} -> {<done>}] ") +
                choice + " deep);"));
        NetworkOptions options;
        options.workers = 2;
        options.stack_bytes = size_t{64} << 10;
        options.boxes = [](const BoxDefinition&) -> BoxFunction {
            return [](BoxCall& call) { call.emit(1, call.arguments()); };
        };
        int left = 0;
        options.output = [&](const Record& record) {
            EXPECT_NE(record.find_field(besides), nullptr);
            ++left;
        };
        Network network(*program, std::move(options));
        for (const int depth : {9'000, 3, 9'000}) {
            Record record;
            record.set(n, depth);
            record.set(besides, std::make_shared<TextField>("", "text"));
            network.push(std::move(record));
        }
        network.settle();
        EXPECT_EQ(left, 3);
    }
}

TEST(StreamsLimitsTest, RecordsThatMultiplyInAFlowAreLimited) {
    NetworkOptions options;
    options.most_waiting = 1000;
    EXPECT_THAT(run("[{<a>} -> {<a>}; {<a>}] \\ {<a>} if <a == 1>", options).failure,
                HasSubstr("1000 records are under way at once behind one"));
}

TEST(StreamsLimitsTest, RecordsThatMultiplyInABoxAreLimited) {
    NetworkOptions options;
    options.queue_bound = 2;
    options.most_waiting = 256;
    for (const bool letters : {false, true}) {
        const Ended ended = run("f \\ {<a>} if <a == 1>", options, letters);
        EXPECT_THAT(ended.failure, HasSubstr("f: 256 records wait here, all others wait for it"));
    }
}

TEST(StreamsLimitsTest, WhatIsUnderWayIsDroppedAndCounted) {
    const auto program = parse(Source("test", "net n connect [{<a>} -> {<a>}] \\ {<a>} if <a == 1>;"));
    NetworkOptions options;
    Network* running = nullptr;
    int left = 0;
    options.output = [&](Record) {
        ++left;
        running->cancel();
    };
    Network network(*program, std::move(options));
    running = &network;
    for (const int a : {0, 1, 2}) {
        Record record;
        record.set(kA, a);
        network.push(std::move(record));
    }
    network.settle();
    EXPECT_EQ(left, 1);
    EXPECT_EQ(network.dropped(), 2U);
}

}  // namespace
}  // namespace heddle::streams
