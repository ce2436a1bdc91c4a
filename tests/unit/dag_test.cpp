// The graph that is shown is the one by which tasks ran: the same on each engine, and of whatever had ended.
#include "heddle/dag.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <sstream>

#include "golden.hpp"
#include "heddle/error.hpp"
#include "support/engines.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;

class DagTest : public test::OnEachEngine {
  protected:
    Runtime runtime_{options()};
};

INSTANTIATE_TEST_SUITE_P(Engines, DagTest, test::engines(), test::engine_name);

/// "n1 -> n2" of each edge.
std::set<std::string> edges(const std::string& dot) {
    std::set<std::string> all;
    std::istringstream lines(dot);
    for (std::string line; std::getline(lines, line);)
        if (const size_t at = line.find(" ["); line.find("->") != std::string::npos)
            all.insert(line.substr(2, at - 2));
    return all;
}

TEST_P(DagTest, IsTheSameOnEachEngineAndHoweverFastTasksEnd) {
    Scalar<int> a(runtime_, 0), b(runtime_, 0);
    std::string dot;
    {
        const Dag dag(runtime_);
        Sequence sequence(runtime_);
        const auto put = [&](const char* name, auto... arguments) {
            sequence.insert(
                {.priority = name[0] == 'f' ? 2 : 0, .name = name}, [](auto&&...) {}, arguments...);
            sequence.wait();  // no task is left to be waited for, and still the edges are there
        };
        put("fill", out(a));
        put("read", in(a));
        put("read \"twice\"", in(a));
        put("change", inout(a), in(b));
        put("add", commute(a));
        put("add", commute(a));
        put("fill", out(a));
        put("alone");
        sequence.insert({.name = "parent"}, [this] {
            Sequence inner(runtime_);
            inner.insert({.name = "child"}, [] {});
            inner.wait();
        });
        sequence.wait();
        EXPECT_EQ(dag.tasks(), 10U);
        dot = dag.dot();
    }
    test::expect_golden(HEDDLE_TEST_DATA "/golden/dag/kinds.dot", dot);
}

TEST_P(DagTest, TasksThatRunAtOnceFollowWhatItTells) {
    constexpr int kTasks = 300, kData = 7;
    std::vector<std::unique_ptr<Scalar<int>>> data;
    for (int i = 0; i < kData; ++i) data.push_back(std::make_unique<Scalar<int>>(runtime_, 0));
    std::vector<int> began(kTasks), ended(kTasks);
    std::atomic<int> clock{0};
    std::mt19937 random(5);
    std::string dot;
    {
        const Dag dag(runtime_);
        Sequence sequence(runtime_);
        // A slow look at the same rules: who wrote last, who read since.
        std::vector<int> writer(kData, -1);
        std::vector<std::vector<int>> readers(kData);
        std::set<std::string> rules;
        for (int i = 0; i < kTasks; ++i) {
            const auto body = [&, i](auto&&...) {
                began[static_cast<size_t>(i)] = ++clock;
                ended[static_cast<size_t>(i)] = ++clock;
            };
            const size_t read = random() % kData, written = (read + 1 + random() % (kData - 1)) % kData;
            sequence.insert(body, in(*data[read]), inout(*data[written]));
            const auto edge = [&](int from) { rules.insert(fmt::format("n{} -> n{}", from + 1, i + 1)); };
            if (writer[read] >= 0) edge(writer[read]);
            for (const int reader : readers[written]) edge(reader);
            if (readers[written].empty() && writer[written] >= 0) edge(writer[written]);
            readers[read].push_back(i);
            readers[written].clear();
            writer[written] = i;
        }
        sequence.wait();
        dot = dag.dot();
        EXPECT_EQ(edges(dot), rules);
    }
    for (const std::string& edge : edges(dot)) {
        int from = 0, to = 0;
        ASSERT_EQ(std::sscanf(edge.c_str(), "n%d -> n%d", &from, &to), 2);
        EXPECT_LT(ended[static_cast<size_t>(from) - 1], began[static_cast<size_t>(to) - 1]) << edge;
    }
}

TEST_P(DagTest, BeyondItsBoundItCounts) {
    const Dag dag(runtime_, 3);
    Sequence sequence(runtime_);
    Scalar<int> x(runtime_);
    for (int i = 0; i < 10; ++i) sequence.insert([](int&) {}, inout(x));
    sequence.wait();
    EXPECT_EQ(dag.tasks(), 10U);
    EXPECT_THAT(dag.dot(), HasSubstr("7 more tasks are not shown"));
    EXPECT_EQ(edges(dag.dot()).size(), 2U);
}

TEST_P(DagTest, EachOfSeveralTellsOfWhatCameSince) {
    const Dag outer(runtime_);
    Scalar<int> x(runtime_);
    Sequence sequence(runtime_);
    const auto insert = [&](int count) {
        for (int i = 0; i < count; ++i) sequence.insert([](int&) {}, inout(x));
        sequence.wait();
    };
    insert(3);
    std::string told;
    {
        const Dag inner(runtime_);
        insert(4);
        told = inner.dot();
        EXPECT_EQ(inner.tasks(), 4U);
    }
    insert(2);
    EXPECT_EQ(edges(told).size(), 3U);
    EXPECT_EQ(outer.tasks(), 9U);
    EXPECT_EQ(edges(outer.dot()).size(), 8U);
}

TEST_P(DagTest, NotInATask) {
    Sequence sequence(runtime_);
    sequence.insert([this] { const Dag inner(runtime_); });
    EXPECT_THROW(sequence.wait(), Error);
}

TEST_P(DagTest, AfterItTasksRunAsBefore) {
    { const Dag dag(runtime_); }
    Scalar<int> x(runtime_, 0);
    Sequence sequence(runtime_);
    for (int i = 0; i < 100; ++i) sequence.insert([](int& v) { ++v; }, inout(x));
    sequence.wait();
    EXPECT_EQ(x.get(), 100);
}

}  // namespace
}  // namespace heddle
