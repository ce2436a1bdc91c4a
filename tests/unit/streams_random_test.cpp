// Random networks and records, against the interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "streams/network.hpp"
#include "streams/parser.hpp"
#include "support/seeds.hpp"
#include "support/streams_interpreter.hpp"

namespace heddle::streams {
namespace {

using namespace test;

/// Records have some of <a> to <d>; <n> counts the turns of what repeats and is nobody else's.
class RandomProgram {
  public:
    /// `ordered`: all of it keeps order.
    RandomProgram(uint64_t seed, bool ordered) : random_(seed), ordered_(ordered) {}

    std::string text() {
        std::string all;
        for (const char* box : {"f", "g"})
            all += fmt::format("box {} (({}) -> ({}));\n", box, tags(2), tags(2));
        return all + fmt::format("net n connect {};", topology(3));
    }
    Record record(int number) {
        Record made;
        for (const char* tag : kTags)
            if (below(3) > 0) made.set(Label(LabelKind::kTag, tag), below(5));
        made.set(Label(LabelKind::kTag, "id"), number);
        return made;
    }

  private:
    static constexpr const char* kTags[] = {"a", "b", "c", "d"};
    int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

    std::string tags(int most) {
        std::vector<std::string> chosen;
        for (const char* tag : kTags)
            if (static_cast<int>(chosen.size()) < most && below(3) == 0)
                chosen.push_back(fmt::format("<{}>", tag));
        if (chosen.empty()) chosen.push_back("<a>");
        return fmt::format("{}", fmt::join(chosen, ", "));
    }
    std::string filter() {
        const std::string first = kTags[below(4)], second = kTags[below(4)];
        const std::string pattern =
            first == second ? fmt::format("{{<{}>}}", first) : fmt::format("{{<{}>, <{}>}}", first, second);
        const std::string output = fmt::format("{{<{}={} + {}>}}", kTags[below(4)], first, below(3));
        switch (below(4)) {
            case 0:
                return fmt::format("[{} -> {}; {{<{}>}}]", pattern, output, kTags[below(4)]);
            case 1:
                return fmt::format("[{} -> if <{} % 2 == 0> then {} else {{<{}={} max 2>, <{}>}}]", pattern,
                                   first, output, second, first,
                                   first != second ? first
                                   : first == "a"  ? "b"
                                                   : "a");
            default:
                return fmt::format("[{} -> {}]", pattern, output);
        }
    }
    std::string topology(int depth) {
        if (depth == 0 || below(6) == 0)
            return below(3) == 0 ? (below(2) == 0 ? "f" : "g") : below(6) == 0 ? "[]" : filter();
        const std::string inner = topology(depth - 1);
        const bool order = ordered_ || below(2) == 0;
        switch (below(6)) {
            case 0:
                return fmt::format("({} {} {})", inner, order ? "||" : "|", topology(depth - 1));
            case 1:
                return fmt::format("({} {} [] {} {})", inner, order ? "||" : "|", order ? "||" : "|",
                                   filter());
            case 2:
                return fmt::format(
                    "([{{}} -> {{<n = {}>}}] .. ({} .. [{{<n>}} -> {{<n = n - 1>}}]) {} {{<n>}} if <n <= 0> "
                    ".. "
                    "[{{<n>}} -> {{}}])",
                    below(4), inner, order ? "**" : "*");
            case 3:
                // No two records of one turn overtake each other here: a way back is for one at a time.
                if (ordered_) return inner;
                return fmt::format(
                    "([{{}} -> {{<n = {}>}}] .. ({} .. [{{<n>}} -> {{<n = n - 1>}}]) \\ {{<n>}} if <n > 0> "
                    ".. "
                    "[{{<n>}} -> {{}}])",
                    below(4), inner);
            case 4:
                return fmt::format("({} {} <{}>)", inner, order ? "!!" : "!", kTags[below(4)]);
            default:
                return fmt::format("({} .. {})", inner, topology(depth - 1));
        }
    }

    std::mt19937_64 random_;
    bool ordered_;
};

/// One to three records; never more than the input has tags to tell.
std::vector<std::vector<int>> box_outcome(const BoxDefinition& box, const std::vector<int>& arguments) {
    int sum = 1;
    for (const int value : arguments) sum = (sum * 7 + value) % 101;
    std::vector<std::vector<int>> all;
    for (int i = 0; i < 1 + (sum % 5 == 0); ++i) {
        std::vector<int> values;
        for (size_t j = 0; j < box.outputs[0].size(); ++j)
            values.push_back((sum + i + static_cast<int>(j)) % 6);
        all.push_back(values);
    }
    return all;
}

std::vector<std::string> texts_of(const std::vector<Record>& records) {
    std::vector<std::string> texts;
    for (const Record& record : records) {
        std::vector<std::string> labels;
        for (const auto& [label, value] : record.tags())
            labels.push_back(fmt::format("{}={}", label.text(), value));
        std::sort(labels.begin(), labels.end());
        texts.push_back(fmt::format("{}", fmt::join(labels, " ")));
    }
    return texts;
}

void compare(uint64_t seed, bool ordered) {
    RandomProgram random(seed, ordered);
    const std::string text = random.text();
    SCOPED_TRACE(fmt::format("seed {}, {}:\n{}", seed, ordered ? "ordered" : "not ordered", text));
    const auto program = parse(Source("random", text));
    std::map<std::string, const BoxDefinition*> boxes;
    for (const auto& box : program->boxes) boxes[box->name] = box.get();
    StreamsInterpreter interpreter(*program, [&](const std::string& name, const std::vector<int>& arguments) {
        return box_outcome(*boxes.at(name), arguments);
    });
    std::vector<Record> out, wanted;
    int failures = 0;
    NetworkOptions options;
    options.workers = 1 + static_cast<int>(seed % 3);
    options.queue_bound = 1 + seed % 4;
    const int calls = 1 + static_cast<int>(seed / 3 % 3);
    options.calls = [=](const BoxDefinition&) { return BoxCalls{calls, ordered}; };
    options.boxes = [](const BoxDefinition&) {
        return [](BoxCall& call) {
            std::vector<int> arguments;
            for (const BoxValue& value : call.arguments()) arguments.push_back(std::get<int>(value));
            for (const std::vector<int>& values : box_outcome(call.box(), arguments))
                call.emit(1, std::vector<BoxValue>(values.begin(), values.end()));
        };
    };
    options.output = [&](Record record) { out.push_back(std::move(record)); };
    options.dead_letter = [&](const Record&, const std::string&) { ++failures; };
    Network network(*program, std::move(options));
    for (int i = 0; i < 20; ++i) {
        const Record record = random.record(i);
        for (Record& one : interpreter.outcome(program->main(), record)) wanted.push_back(std::move(one));
        network.push(record);
    }
    network.settle();
    std::vector<std::string> got = texts_of(out), right = texts_of(wanted);
    if (!ordered) {
        std::sort(got.begin(), got.end());
        std::sort(right.begin(), right.end());
    }
    EXPECT_EQ(got, right);
    EXPECT_EQ(failures, interpreter.failures());
}

/// Networks whose parts keep records and have fired, for one record at a time. No record goes on for ever:
/// each stage of a star that has not fired keeps what comes.
class RandomStatefulProgram {
  public:
    explicit RandomStatefulProgram(uint64_t seed) : random_(seed) {}

    std::string text() { return fmt::format("box f ((<a>) -> (<b>));\nnet n connect {};", topology(4)); }
    Record record(int number) {
        Record made;
        for (const char* tag : kTags)
            if (below(2) > 0) made.set(Label(LabelKind::kTag, tag), below(3));
        made.set(Label(LabelKind::kTag, "id"), number);
        return made;
    }

  private:
    static constexpr const char* kTags[] = {"a", "b", "c", "d"};
    int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

    std::string topology(int depth) {
        const int first = below(4);
        const char *const x = kTags[first], *const y = kTags[(first + 1 + below(3)) % 4];
        const std::string cell = fmt::format("[| {{<{}>}}, {{<{}>}} |]", x, y);
        if (depth == 0)
            return below(4) == 0 ? "(f | [])" : fmt::format("([{{<{}>}} -> {{<{}>}}] | [])", x, y);
        const bool order = below(3) == 0;
        const auto inner = [&] { return topology(depth - 1); };
        switch (below(8)) {
            case 0:
                return cell;
            case 1:
                return fmt::format("({} {} [])", inner(), order ? "||" : "|");
            case 2:
                return fmt::format("({} {} <{}> | [])", inner(), order ? "!!" : "!", x);
            case 3:  // so many stages
                return fmt::format(
                    "([{{}} -> {{<{0} = {1}>}}] .. ({2} .. [{{<{0}>}} -> {{<{0} = {0} - 1>}}]) {3} {{<{0}>}} "
                    "if "
                    "<{0} <= 0> .. [{{<{0}>}} -> {{}}])",
                    fmt::format("n{}", depth), below(5), inner(), order ? "**" : "*");
            case 4:  // pairs, and what counts the stages that have fired before it
                return fmt::format(
                    "([{{}} -> {{<{0}>, <s = 0>}}] .. ({1} .. ([{{<{2}>, <{3}>}} -> {{<{2}>, <e>}}] | "
                    "[{{<s>}} "
                    "-> {{<s = s + 1>}}])) {4} {{<e>}} .. [{{<e>, <s>}} -> {{<c = s>}}])",
                    x, cell, x, y, order ? "**" : "*");
            case 5:  // a sum
                return fmt::format(
                    "([{{}} -> {{<{0}>}}] .. ({1} .. ([{{<{0}>, <{2}>}} -> {{<{0} = {0} + {2}>}}] | [])) {3} "
                    "{{<{0}>}} if <{0} >= 4>)",
                    x, cell, y, order ? "**" : "*");
            default:
                return fmt::format("({} .. {})", inner(), inner());
        }
    }

    std::mt19937_64 random_;
};

void compare_stateful(uint64_t seed) {
    RandomStatefulProgram random(seed);
    const std::string text = random.text();
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, text));
    const auto program = parse(Source("random", text));
    const auto twice = [](int value) { return (value * 2 + 1) % 3; };
    StreamsInterpreter interpreter(*program, [&](const std::string&, const std::vector<int>& arguments) {
        return std::vector<std::vector<int>>{{twice(arguments[0])}};
    });
    std::vector<Record> out;
    int failures = 0;
    NetworkOptions options;
    options.workers = 1 + static_cast<int>(seed % 2);
    options.boxes = [&](const BoxDefinition&) {
        return [&](BoxCall& call) {
            call.emit(1, std::vector<BoxValue>{twice(std::get<int>(call.arguments()[0]))});
        };
    };
    options.output = [&](Record record) { out.push_back(std::move(record)); };
    options.dead_letter = [&](const Record&, const std::string&) { ++failures; };
    Network network(*program, std::move(options));
    for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
        const Record record = random.record(i);
        const std::vector<Record> wanted = interpreter.outcome(program->main(), record);
        network.push(record);
        network.settle();
        EXPECT_EQ(texts_of(out), texts_of(wanted)) << "record " << i << ": " << record.text();
        EXPECT_EQ(failures, interpreter.failures()) << "record " << i << ": " << record.text();
        out.clear();
    }
}

TEST(StreamsRandomTest, WhatIsKeptActsAsIfNothingEverWent) {
    const auto [first, count] = seeds(150);
    for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed)
        compare_stateful(seed);
}

TEST(StreamsRandomTest, NetworksGiveWhatTheirRulesSay) {
    const auto [first, count] = seeds(150);
    for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed)
        compare(seed, false);
}

TEST(StreamsRandomTest, OrderedOnesGiveItInOrder) {
    const auto [first, count] = seeds(150);
    for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed)
        compare(seed, true);
}

}  // namespace
}  // namespace heddle::streams
