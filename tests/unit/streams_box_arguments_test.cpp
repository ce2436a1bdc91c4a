// How a C++ function takes the values of a record, and what of them is left where it throws.
#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "heddle/streams.hpp"

namespace heddle::snet {
namespace {

using testing::ElementsAre;

using A = Tag<"a">;
using Words = Field<"words", std::vector<std::string>>;
using Also = Field<"also", std::vector<std::string>>;
using Only = Field<"only", std::unique_ptr<int>>;

/// What comes out of one record, and what fails.
struct Ended {
    std::vector<Record> out, letters;
};
Ended run(const Net& net, Record one) {
    Ended ended;
    NetworkOptions options;
    options.output = [&](Record record) { ended.out.push_back(std::move(record)); };
    options.dead_letter = [&](Record record, const std::string&) {
        ended.letters.push_back(std::move(record));
    };
    Network network(net, std::move(options));
    network.push(std::move(one));
    network.close();
    network.settle();
    return ended;
}

TEST(StreamsBoxArguments, WhatABoxTakesByRvalueAndDoesNotTouchIsInItsDeadLetter) {
    const Net refuses = box<In<Words, Only>, Out<A>>(
        "refuses", [](std::vector<std::string>&&, std::unique_ptr<int>&& only) -> int {
            throw std::runtime_error("I want none of " + std::to_string(*only));
        });
    Ended ended =
        run(refuses, record<Words, Only>(std::vector<std::string>{"kept"}, std::make_unique<int>(7)));
    ASSERT_EQ(ended.letters.size(), 1U);
    EXPECT_THAT(ended.letters[0].get<Words>(), ElementsAre("kept"));
    EXPECT_EQ(*ended.letters[0].take<Only>(), 7);
}

TEST(StreamsBoxArguments, WhatItTookByValueIsNot) {
    const Net refuses = box<In<Words>, Out<A>>(
        "refuses", [](std::vector<std::string> words) -> int { throw std::runtime_error(words.at(0)); });
    const Ended ended = run(refuses, record<Words>(std::vector<std::string>{"gone"}));
    ASSERT_EQ(ended.letters.size(), 1U);
    EXPECT_EQ(ended.letters[0].text(), "{}");
}

/// The other record goes on with its own.
TEST(StreamsBoxArguments, WhatTwoRecordsShareIsCopiedForWhoTakesItByRvalue) {
    const Net both =
        filter("{words} -> {words}; {also = words}") >>
        (box<In<Words>, Out<Words>>("add",
                                    [](std::vector<std::string>&& words) {
                                        words.emplace_back("more");
                                        return std::move(words);
                                    }) |
         box<In<Also>, Out<Also>>(
             "same", [](std::vector<std::string> && also) -> auto&& { return std::move(also); }));
    const Ended ended = run(both, record<Words>(std::vector<std::string>{"one"}));
    ASSERT_EQ(ended.out.size(), 2U);
    for (const Record& one : ended.out) {
        if (one.has<Words>())
            EXPECT_THAT(one.get<Words>(), ElementsAre("one", "more"));
        else
            EXPECT_THAT(one.get<Also>(), ElementsAre("one"));
    }
}

/// Not moved onto itself, which would leave it empty.
TEST(StreamsBoxArguments, WhatIsReturnedWhereItLiesStaysThere) {
    const void* before = nullptr;
    const Net same = box<In<Words>, Out<Words>>(
        "same", [&](std::vector<std::string> && words) -> auto&& {
            before = words.data();
            return std::move(words);
        });
    const Ended ended = run(same, record<Words>(std::vector<std::string>{"one", "two"}));
    ASSERT_EQ(ended.out.size(), 1U);
    EXPECT_THAT(ended.out[0].get<Words>(), ElementsAre("one", "two"));
    EXPECT_EQ(ended.out[0].get<Words>().data(), before);
}

}  // namespace
}  // namespace heddle::snet
