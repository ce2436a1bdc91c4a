// What devices do, in the trace that HEDDLE_TRACE names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "heddle/device.hpp"
#include "support/device_programs.hpp"
#include "support/traced.hpp"

namespace heddle::devices {
namespace {

/// A process of its own, since a trace ends with its process.
int run_traced() {
    DeviceRuntime runtime({.kinds = {}, .simulated = test::two_simulated()});
    const auto program = std::make_shared<Program>(runtime, test::integer_program());
    const auto buffer = std::make_shared<Buffer>(4000);
    for (size_t i = 0; i < 6; ++i) {
        auto task = std::make_shared<DeviceTask>(program, Score{}, i == 5 ? "last" : "");
        task->add_kernel("add").arg(0, inout(buffer)).arg(1, 1).work(1000);
        if (i == 0) task->add_kernel("multiply").arg(0, inout(buffer)).arg(1, 1).work(1000);
        task->only_on(runtime.devices()[i % 2]);
        runtime.submit(task);
    }
    runtime.finish();
    return static_cast<const int*>(buffer->host())[0] == 6 ? 0 : 1;
}

TEST(DeviceTraces, TellTasksAndCopiesOfEachDevice) {
    const trace::Timeline timeline = heddle::test::trace_of(run_traced);
    EXPECT_EQ(timeline.dropped, 0);
    std::map<std::string, int> pieces;
    for (const trace::Work& work : timeline.work)
        ++pieces[timeline.lanes.at(static_cast<size_t>(work.lane)).name + ": " + work.name];
    using ::testing::Pair;
    EXPECT_THAT(pieces, ::testing::ElementsAre(Pair("device 0 simulated cpu copies: from the device", 3),
                                               Pair("device 0 simulated cpu copies: to the device", 3),
                                               Pair("device 0 simulated cpu: add", 2),
                                               Pair("device 0 simulated cpu: add+multiply", 1),
                                               Pair("device 1 simulated gpu copies: from the device", 3),
                                               Pair("device 1 simulated gpu copies: to the device", 3),
                                               Pair("device 1 simulated gpu: add", 2),
                                               Pair("device 1 simulated gpu: last", 1)));
}

}  // namespace
}  // namespace heddle::devices
