// What a user may get wrong with devices: told before it does harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/temporary_folder.hpp"
#include "devices/cost_model.hpp"
#include "heddle/device_variant.hpp"
#include "support/device_programs.hpp"
#include "support/wait_until.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::integer_program;
using test::simulated;
using test::two_simulated;
using ::testing::HasSubstr;

TEST(DeviceRefusals, ADeviceOfAnotherRuntime) {
    DeviceRuntime runtime(simulated(two_simulated())), other(simulated(two_simulated()));
    const auto program = std::make_shared<Program>(runtime, integer_program());
    DeviceTask task(program, {}, "mine");
    task.only_on(runtime.devices()[1]);
    EXPECT_THAT(failure([&] { task.only_on(other.devices()[1]); }),
                HasSubstr("task \"mine\" cannot be for " + other.devices()[1].info().name +
                          ": that is another runtime's"));
}

TEST(DeviceRefusals, AKindTwice) {
    EXPECT_THAT(failure([] {
                    DeviceRuntime twice({.kinds = {"opencl", "opencl"}});
                }),
                HasSubstr("the devices of kind \"opencl\" are asked for twice"));
}

TEST(DeviceRefusals, ARangeWithoutAnEnd) {
    DeviceRuntime runtime(simulated(two_simulated()));
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(100, "picture");
    DeviceTask task(program);
    EXPECT_THAT(failure([&] {
                    task.add_kernel("add").arg(0, in(buffer, {8, SIZE_MAX - 4}));
                }),
                HasSubstr("bytes 8 to 18446744073709551615 are not in buffer \"picture\""));
}

/// A pipe that nobody writes to.
TEST(DeviceRefusals, CostsThatAreKeptInNoFile) {
    const TemporaryFolder folder("/tmp/heddle-costs-");
    const std::string pipe = folder.path() + "/costs";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& path : {pipe, std::string("/dev/zero"), folder.path()})
        EXPECT_THAT(CostModel(path).problem(), HasSubstr(path + " is no file"));
}

TEST(DeviceRefusals, AVariantWithoutAProgramOrWithoutWork) {
    TaskDevices devices(1, simulated(two_simulated()));
    const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
    Runtime runtime;
    Vector<int> data(runtime, 10);
    const auto told = [&](const DeviceVariant& variant) {
        Sequence sequence(runtime);
        devices.insert(sequence, variant, test::add, inout(data), value(1));
        return failure([&] { sequence.wait(); });
    };
    EXPECT_THAT(told({nullptr, "add", {10}}), HasSubstr("a device task needs a program"));
    EXPECT_THAT(told({program, "add", {0}}), HasSubstr("kernel \"add\" has no work"));
}

/// The last reference to it is a callback's.
TEST(DeviceRefusals, ARuntimeThatItsOwnWorkerLetsGoEndsAllTheSame) {
    struct Told {
        std::atomic<bool>& gone;
        ~Told() { gone = true; }
    };
    struct Mine final : Scheduler {
        explicit Mine(std::atomic<bool>& gone) : told{gone} {}
        void push(TaskPointer task) override { own->push(std::move(task)); }
        TaskPointer pop(const Device& device) override { return own->pop(device); }
        void wait_until_idle() override { own->wait_until_idle(); }
        Told told;
        std::shared_ptr<Scheduler> own = make_scheduler("fcfs");
    };
    std::atomic<bool> gone{false}, goes{false};
    {
        DeviceOptions options = simulated(two_simulated());
        options.scheduler = std::make_shared<Mine>(gone);
        auto runtime = std::make_shared<DeviceRuntime>(options);
        options.scheduler = nullptr;
        const auto program = std::make_shared<Program>(*runtime, integer_program());
        const auto buffer = std::make_shared<Buffer>(40);
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("add").arg(0, inout(buffer)).arg(1, 1).work(10);
        task->on_configure([runtime, &goes](Device&, DeviceTask&) { goes.wait(false); });
        runtime->submit(task);
        runtime.reset();
    }
    goes = true;
    goes.notify_all();
    EXPECT_TRUE(heddle::test::becomes_true([&] { return gone.load(); }, std::chrono::seconds(20)));
}

}  // namespace
}  // namespace heddle::devices
