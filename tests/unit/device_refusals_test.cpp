// What a user may get wrong with devices: told before it does harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"
#include "devices/cost_model.hpp"
#include "heddle/device_split.hpp"
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

TEST(DeviceRefusals, ASchedulerThatAnotherRuntimeHas) {
    DeviceOptions options = simulated(two_simulated());
    options.scheduler = make_scheduler("heft");
    {
        DeviceRuntime first(options);
        EXPECT_THAT(failure([&] { DeviceRuntime second(options); }), HasSubstr("another runtime's already"));
    }
    DeviceRuntime later(options);
}

/// First in, first out, for whichever device asks.
class ListScheduler : public Scheduler {
  public:
    TaskPointer pop(const Device&) override {
        const std::lock_guard guard(mutex_);
        if (tasks_.empty()) return nullptr;
        TaskPointer task = std::move(tasks_.front());
        tasks_.pop_front();
        return task;
    }
    void wait_until_idle() override {}

  protected:
    std::mutex mutex_;
    std::deque<TaskPointer> tasks_;
};

/// Each task twice.
class CarelessScheduler final : public ListScheduler {
  public:
    void push(TaskPointer task) override {
        const std::lock_guard guard(mutex_);
        tasks_.push_back(task);
        tasks_.push_back(std::move(task));
    }
};

/// Returns how many of the tasks, which are for the first device alone, have failed.
int run_carelessly(const std::vector<SimulatedDevice>& devices, std::string& why) {
    DeviceOptions options = simulated(devices);
    options.scheduler = std::make_shared<CarelessScheduler>();
    DeviceRuntime runtime(options);
    const auto program = std::make_shared<Program>(runtime, integer_program());
    constexpr int kTasks = 40;
    std::vector<TaskPointer> tasks;
    for (int i = 0; i < kTasks; ++i) {
        tasks.push_back(std::make_shared<DeviceTask>(program, Score{}, "mine"));
        tasks.back()->add_kernel("fill").arg(0, out(std::make_shared<Buffer>(40))).arg(1, i).work(10);
        tasks.back()->only_on(runtime.devices()[0]);
    }
    runtime.submit(tasks);
    why = failure([&] { runtime.finish(); });
    int failed = 0;
    for (const TaskPointer& task : tasks) failed += task->status() == TaskStatus::kFailed;
    return failed;
}

TEST(DeviceRefusals, ATaskThatASchedulerGivesTwiceOrToADeviceThatCannotRunIt) {
    std::string why;
    const int failed = run_carelessly(two_simulated(), why);
    EXPECT_THAT(why,
                HasSubstr(failed > 0 ? "the scheduler has given task \"mine\" to" : "nothing was thrown"));
    // With one device what comes twice is all that there is at that moment.
    EXPECT_EQ(run_carelessly({{.name = "alone", .type = DeviceType::kCpu, .shares_host_memory = true}}, why),
              0);
    EXPECT_EQ(why, "nothing was thrown");
}

/// Gives what was submitted, the last first, before it is pushed.
class HastyScheduler final : public ListScheduler {
  public:
    void submitted(std::span<const TaskPointer> batch, std::span<const Device* const>) override {
        const std::lock_guard guard(mutex_);
        tasks_.insert(tasks_.begin(), batch.rbegin(), batch.rend());
    }
    void push(TaskPointer task) override {
        const std::lock_guard guard(mutex_);
        tasks_.push_back(std::move(task));
    }
};

TEST(DeviceRefusals, ATaskThatASchedulerGivesBeforeItWasPushed) {
    DeviceOptions options = simulated({{.name = "alone"}});
    options.scheduler = std::make_shared<HastyScheduler>();
    DeviceRuntime runtime(options);
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(40);
    std::vector<TaskPointer> chain;
    for (int i = 0; i < 3; ++i) {
        chain.push_back(std::make_shared<DeviceTask>(program, Score{}, "link"));
        chain.back()->add_kernel("add").arg(0, inout(buffer)).arg(1, i).work(10);
    }
    runtime.submit(chain);
    EXPECT_THAT(failure([&] { runtime.finish(); }), HasSubstr("given task \"link\" before it was pushed"));
}

TEST(DeviceRefusals, WorkAndGroupsThatCannotBe) {
    DeviceRuntime runtime(simulated(two_simulated()));
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto fails = [&](const std::function<void(Kernel&)>& shape) {
        const auto task = std::make_shared<DeviceTask>(program);
        Kernel& kernel = task->add_kernel("fill").arg(0, out(std::make_shared<Buffer>(4000))).arg(1, 1);
        shape(kernel);
        runtime.submit(task);
        return failure([&] { runtime.finish(); });
    };
    EXPECT_EQ(fails([](Kernel& kernel) { kernel.work(1000).group(10); }), "nothing was thrown");
    EXPECT_THAT(fails([](Kernel& kernel) { kernel.work(1000).group(10, 2); }),
                HasSubstr("1000 x 1 x 1 items of kernel \"fill\" have no groups of 10 x 2 x 1"));
    EXPECT_THAT(fails([](Kernel& kernel) { kernel.work(size_t{1} << 32, size_t{1} << 32); }),
                HasSubstr("more than can be counted"));
    EXPECT_THAT(fails([](Kernel& kernel) { kernel.work(5, 0); }), HasSubstr("has no work"));
    EXPECT_THAT(fails([](Kernel& kernel) { kernel.work(16).offset(SIZE_MAX - 7); }),
                HasSubstr("16 x 1 x 1 items of kernel \"fill\" at"));
}

TEST(DeviceRefusals, ValuesAndFunctionsThatAreNone) {
    DeviceRuntime runtime(simulated(two_simulated()));
    const auto program = std::make_shared<Program>(runtime, integer_program());
    DeviceTask task(program);
    Kernel& kernel = task.add_kernel("fill");
    EXPECT_THAT(failure([&] { kernel.bytes(1, nullptr, 8); }), HasSubstr("it is at a null pointer"));
    EXPECT_THAT(failure([&] { kernel.bytes(1, &runtime, 0); }), HasSubstr("it has no bytes"));
    ProgramSource source = integer_program();
    source.host["fill"] = nullptr;
    EXPECT_THAT(failure([&] { Program(runtime, source); }), HasSubstr("kernel \"fill\" is empty"));
    EXPECT_THAT(failure([&] { (void)DeviceSplit(runtime).run(10, nullptr); }), HasSubstr("that is empty"));
}

TEST(DeviceRefusals, NoMemoryToCopyFromOrTo) {
    Buffer buffer(8, "mine");
    EXPECT_THAT(failure([&] { buffer.read(nullptr, 4); }), HasSubstr("4 bytes of buffer \"mine\""));
    EXPECT_THAT(failure([&] { buffer.write(nullptr, 4); }), HasSubstr("4 bytes of buffer \"mine\""));
}

/// In a process of its own: PoCL looks at it once.
TEST(DeviceDiscovery, ADriverThatOffersNoDeviceIsTold) {
    ::setenv("POCL_DEVICES", "bogus", 1);
    ::setenv("OCL_ICD_VENDORS", "pocl.icd", 1);
    const std::vector<DeviceInfo> all = list_devices();
    const auto opencl = std::ranges::find(all, "opencl", &DeviceInfo::kind);
    ASSERT_NE(opencl, all.end());
    if (opencl->reason.find("no devices of kind opencl") == std::string::npos ||
        opencl->reason.find("offer no") == std::string::npos)
        GTEST_SKIP() << "skipped: no PoCL that is known by this name: " << opencl->reason;
    EXPECT_THAT(failure([] { DeviceRuntime none; }),
                HasSubstr("there is no device here; no devices of kind opencl"));
}

/// In a process of its own: later it is known what there is.
TEST(DeviceDiscovery, ManyThreadsMayLookForTheFirstTimeAtOnce) {
    std::vector<size_t> found(8);
    {
        std::vector<std::jthread> threads;
        for (size_t& count : found) threads.emplace_back([&] { count = list_devices().size(); });
    }
    EXPECT_THAT(found, ::testing::Each(found.front()));
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

TEST(DeviceRefusals, ACallbackThatWaitsForItsOwnRuntime) {
    DeviceRuntime runtime(simulated(two_simulated())), other(simulated(two_simulated()));
    const auto integers = [](DeviceRuntime& of) { return std::make_shared<Program>(of, integer_program()); };
    const auto add = [](const std::shared_ptr<Program>& program, const std::string& name) {
        auto task = std::make_shared<DeviceTask>(program, Score{}, name);
        task->add_kernel("add").arg(0, inout(std::make_shared<Buffer>(40))).arg(1, 1).work(10);
        return task;
    };
    const auto program = integers(runtime), others = integers(other);
    const auto first = add(program, "first"), later = add(program, "later"), foreign = add(others, "foreign");
    runtime.submit(first);
    first->wait();
    other.submit(foreign);
    const auto task = add(program, "waits");
    std::string finished, waited;
    task->on_configure([&](Device&, DeviceTask& self) {
        first->wait();
        foreign->wait();
        finished = failure([&] { runtime.finish(); });
        waited = failure([&] { self.wait(); });
    });
    task->on_finish([&](Device&, DeviceTask&) {
        runtime.submit(later);
        later->wait();
    });
    runtime.submit(task);
    EXPECT_THAT(failure([&] { task->wait(); }),
                HasSubstr("a callback of task \"waits\" cannot wait for task \"later\""));
    EXPECT_THAT(finished, HasSubstr("a callback of task \"waits\" cannot wait for all tasks"));
    EXPECT_THAT(waited, HasSubstr("cannot wait for task \"waits\""));
    later->wait();
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
