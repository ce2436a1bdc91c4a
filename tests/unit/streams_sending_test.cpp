// What boxes send in the midst of their calls (streams/box_part.cpp): short calls hold it back until they are
// over, long ones send it on at once; order, inheritance, failures and memory are the same.
#include <gmock/gmock.h>

#include <chrono>
#include <map>

#include "heddle/streams.hpp"
#include "support/kernels.hpp"

namespace heddle::snet {
namespace {

using namespace test;
using testing::ElementsAreArray;

using Count = Tag<"count">;
using From = Tag<"from">;
using At = Tag<"at">;
using Text = Field<"text", std::string>;
using Only = Field<"only", std::unique_ptr<int>>;

struct Shape {
    int each;                        ///< records that a call sends
    std::chrono::microseconds call;  ///< how long it takes besides
    unsigned workers;
};

class StreamsSending : public testing::TestWithParam<Shape> {
  protected:
    /// Sends `count` records, each with its number.
    [[nodiscard]] static Net many() {
        return box<In<Count>, Out<At>>("many", [](auto& emit, int count) {
            test::spend(GetParam().call);
            for (int i = 0; i < count; ++i) emit(i);
        });
    }
};

TEST_P(StreamsSending, KeepsOrderAndWhatTheBoxDoesNotTake) {
    constexpr int kRecords = 2'000;
    const Net next = box<In<At>, Out<At>>("next", [](int at) { return at + 1; });
    const Net twice = box<In<At>, Out<At>>("twice", [](auto& emit, int at) {
        emit(2 * at);
        emit(2 * at + 1);
    });
    NetworkOptions options;
    options.workers = GetParam().workers;
    std::vector<std::pair<int, int>> seen, expected;
    options.output = [&](const Record& record) {
        EXPECT_EQ(record.get<Text>(), std::to_string(record.get<From>()));
        seen.emplace_back(record.get<From>(), record.get<At>());
    };
    Network network(many() >> next >> twice >> next, std::move(options));
    for (int i = 0; i < kRecords; ++i)
        network.push(record<Count, From, Text>(GetParam().each, i, std::to_string(i)));
    network.close();
    network.settle();
    for (int i = 0; i < kRecords; ++i)
        for (int at = 0; at < 2 * GetParam().each; ++at) expected.emplace_back(i, at + 3);
    EXPECT_THAT(seen, ElementsAreArray(expected));
}

/// Each tenth call fails when it has sent all.
TEST_P(StreamsSending, WhatWasSentBeforeAFailureArrivesAndTheRecordIsWhole) {
    constexpr int kRecords = 1'000;
    const Net failing =
        box<In<Only, Count>, Out<At>>("failing", [](auto& emit, const std::unique_ptr<int>& only, int count) {
            test::spend(GetParam().call);
            for (int i = 0; i < count; ++i) emit(i);
            if (*only % 10 == 0) throw std::runtime_error("it is one of ten");
        });
    NetworkOptions options;
    options.workers = GetParam().workers;
    int sent = 0;
    std::map<int, int> failed;
    options.output = [&](const Record& /*record*/) { ++sent; };
    options.dead_letter = [&](const Record& record, const std::string& why) {
        EXPECT_THAT(why, testing::HasSubstr("it is one of ten"));
        failed[*record.get<Only>()] = record.get<Count>();
    };
    Network network(failing, std::move(options));
    for (int i = 0; i < kRecords; ++i)
        network.push(record<Only, Count>(std::make_unique<int>(i), GetParam().each));
    network.close();
    network.settle();
    EXPECT_EQ(sent, kRecords * GetParam().each);
    EXPECT_EQ(failed.size(), kRecords / 10u);
    for (const auto& [only, count] : failed) {
        EXPECT_EQ(only % 10, 0);
        EXPECT_EQ(count, GetParam().each);
    }
}

/// What is sent in the midst of a call is of the record that it is sent in alone.
TEST_P(StreamsSending, WhatHasOneOwnerKeepsIt) {
    constexpr int kRecords = 500;
    const Net many = box<In<Count>, Out<Only>>("many", [](auto& emit, int count) {
        test::spend(GetParam().call);
        for (int i = 0; i < count; ++i) emit(std::make_unique<int>(i));
    });
    const Net take = box<In<Only>, Out<At>>("take", [](std::unique_ptr<int> only) { return *only; });
    NetworkOptions options;
    options.workers = GetParam().workers;
    std::vector<int> seen, expected;
    options.output = [&](const Record& record) { seen.push_back(record.get<At>()); };
    Network network(many >> take, std::move(options));
    for (int i = 0; i < kRecords; ++i) network.push(record<Count>(GetParam().each));
    network.close();
    network.settle();
    for (int i = 0; i < kRecords; ++i)
        for (int at = 0; at < GetParam().each; ++at) expected.push_back(at);
    EXPECT_THAT(seen, ElementsAreArray(expected));
}

INSTANTIATE_TEST_SUITE_P(Shapes, StreamsSending,
                         testing::Values(Shape{0, {}, 2}, Shape{1, {}, 1}, Shape{1, {}, 2}, Shape{3, {}, 2},
                                         Shape{16, {}, 2}, Shape{17, {}, 1}, Shape{40, {}, 2},
                                         Shape{3, std::chrono::microseconds(2), 2}),
                         [](const auto& shape) {
                             return "sends_" + std::to_string(shape.param.each) + "_in_" +
                                    std::to_string(shape.param.call.count()) + "_us_on_" +
                                    std::to_string(shape.param.workers);
                         });

}  // namespace
}  // namespace heddle::snet
