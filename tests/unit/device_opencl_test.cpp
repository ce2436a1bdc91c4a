// Devices of kind opencl, as far as this machine has drivers: PoCL, and Oclgrind beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/temporary_folder.hpp"
#include "heddle/device.hpp"
#include "support/random_program.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::integer_program;
using ::testing::HasSubstr;

class OpenClDevices : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const DeviceInfo& info : list_devices())
            if (info.kind == "opencl" && !info.available) GTEST_SKIP() << info.reason;
    }
};

TEST_F(OpenClDevices, IntegerKernelsGiveTheExactResultWithoutACopy) {
    DeviceRuntime runtime;
    const auto program = std::make_shared<Program>(runtime, integer_program());
    std::vector<unsigned> values(1 << 16);
    for (unsigned i = 0; i < values.size(); ++i) values[i] = i * 2654435761u;
    const auto buffer = std::make_shared<Buffer>(values.data(), values.size() * sizeof(int));
    const bool in_place = runtime.devices()[0].info().shares_host_memory;
    for (int i = 0; i < 10; ++i) {
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("add").arg(0, inout(buffer)).arg(1, i).work(values.size());
        task->add_kernel("multiply").arg(0, inout(buffer)).arg(1, 2 * i + 1).work(values.size());
        task->only_on(runtime.devices()[0]);
        runtime.submit(task);
    }
    runtime.finish();
    (void)buffer->host();
    for (unsigned i = 0; i < values.size(); ++i) {
        unsigned expected = i * 2654435761u;
        for (unsigned k = 0; k < 10; ++k) expected = (expected + k) * (2 * k + 1);
        ASSERT_EQ(values[i], expected) << i;
    }
    if (in_place) {
        EXPECT_EQ(buffer->traffic().bytes, 0u);
    }
}

/// Drivers end the process there, or say what else stands for a lost device.
TEST_F(OpenClDevices, TooMuchLocalMemoryFailsItsTaskAlone) {
    DeviceRuntime runtime;
    const auto program = std::make_shared<Program>(
        runtime, ProgramSource{.opencl = "kernel void through(global int* a, local int* t) {\n"
                                         "  t[0] = a[0]; a[0] = t[0] + 1;\n}\n"});
    const auto buffer = std::make_shared<Buffer>(sizeof(int));
    for (const Device& device : runtime.devices()) {
        const auto run = [&](size_t bytes) {
            const auto task = std::make_shared<DeviceTask>(program);
            task->add_kernel("through").arg(0, inout(buffer)).arg(1, LocalMemory{bytes}).work(1);
            task->only_on(device);
            runtime.submit(task);
            return failure([&] { task->wait(); });
        };
        EXPECT_EQ(run(64), "nothing was thrown");
        for (const size_t bytes : {size_t{1} << 30, SIZE_MAX})
            EXPECT_THAT(run(bytes), HasSubstr("bytes of local memory, and " + device.info().name + " has "));
        EXPECT_TRUE(device.alive());
        EXPECT_EQ(run(64), "nothing was thrown");
    }
    (void)failure([&] { runtime.finish(); });
}

TEST_F(OpenClDevices, APartOfOneRowIsThatRow) {
    DeviceRuntime runtime;
    const auto program = std::make_shared<Program>(
        runtime,
        ProgramSource{.opencl = "kernel void place(global int* to) {\n"
                                "  size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);\n"
                                "  to[(z * 3 + y) * 3 + x] = 100 * z + 10 * y + x;\n}\n"});
    std::vector<int> values(27, -1);
    const auto buffer = std::make_shared<Buffer>(values.data(), values.size() * sizeof(int));
    for (size_t z = 0; z < 3; ++z)
        for (size_t y = 0; y < 3; ++y) {
            auto task = std::make_shared<DeviceTask>(program);
            task->add_kernel("place").arg(0, inout(buffer)).work(3, 1, 1).offset(0, y, z);
            runtime.submit(task);
        }
    runtime.finish();
    (void)buffer->host();
    for (int i = 0; i < 27; ++i)
        EXPECT_EQ(values[static_cast<size_t>(i)], 100 * (i / 9) + 10 * (i / 3 % 3) + i % 3);
}

TEST_F(OpenClDevices, ABuildErrorNamesTheDeviceAndTheLine) {
    DeviceRuntime runtime;
    const auto program = std::make_shared<Program>(runtime, integer_program());
    for (int i = 0; i < 3; ++i) {
        try {
            Program bad(runtime, {.opencl = "kernel void f(global int* a) {\n  a[0] = unknown;\n}\n"});
            FAIL() << "it was built";
        } catch (const BuildError& error) {
            EXPECT_EQ(error.device(), runtime.devices()[0].info().name);
            EXPECT_THAT(error.what(), HasSubstr(error.device()));
            EXPECT_THAT(error.log(), HasSubstr(":2:"));
            EXPECT_THAT(error.log(), HasSubstr("unknown"));
        }
    }
    const auto buffer = std::make_shared<Buffer>(400);
    auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("fill").arg(0, out(buffer)).arg(1, 9).work(100);
    runtime.submit(task);
    runtime.finish();
    EXPECT_EQ(static_cast<const int*>(buffer->host())[99], 9);
}

TEST_F(OpenClDevices, ArgumentsThatDoNotFitAreNamed) {
    DeviceRuntime runtime;
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(400);
    const auto outcome = [&](const std::function<void(Kernel&)>& set) {
        auto task = std::make_shared<DeviceTask>(program);
        set(task->add_kernel("add").work(10));
        task->only_on(runtime.devices()[0]);
        runtime.submit(task);
        return failure([&] { runtime.finish(); });
    };
    EXPECT_THAT(outcome([&](Kernel& kernel) { kernel.arg(0, inout(buffer)); }),
                HasSubstr("\"add\" has 2 arguments, and 1 were set"));
    EXPECT_THAT(
        outcome([&](Kernel& kernel) { kernel.arg(0, 1).arg(1, 1); }),
        HasSubstr("argument 0 of kernel \"add\", which is \"int* data\", cannot be a value of 4 bytes"));
    EXPECT_THAT(outcome([&](Kernel& kernel) { kernel.arg(0, inout(buffer)).arg(1, 1.0); }),
                HasSubstr("argument 1 of kernel \"add\", which is \"int by\", cannot be a value of 8 bytes"));
    EXPECT_THAT(outcome([&](Kernel& kernel) { kernel.arg(0, inout(buffer)).arg(1, 1); }),
                "nothing was thrown");
}

TEST_F(OpenClDevices, WhereAProgramIsNotBuiltItsTasksRunElsewhere) {
    DeviceRuntime runtime({.kinds = {"opencl"}, .simulated = {{.name = "simulated"}}});
    ProgramSource source = integer_program();
    source.opencl = "kernel void add(global int* data, int by) { data[0] = nowhere; }";
    const auto program = std::make_shared<Program>(runtime, source);
    const Device& refuses = runtime.devices().front();
    EXPECT_FALSE(program->built_on(refuses));
    EXPECT_THAT(program->log(refuses), HasSubstr("nowhere"));
    const auto buffer = std::make_shared<Buffer>(400);
    const auto fill = [&] {
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("fill").arg(0, out(buffer)).arg(1, 4).work(100);
        return task;
    };
    for (int i = 0; i < 10; ++i) runtime.submit(fill());
    runtime.finish();
    EXPECT_EQ(runtime.devices().back().tasks_run(), 10u);
    EXPECT_EQ(static_cast<const int*>(buffer->host())[99], 4);
    const auto there = fill();
    there->only_on(refuses);
    EXPECT_THAT(failure([&] { runtime.submit(there); }), HasSubstr("the program was not built"));
}

size_t open_files() {
    size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
}

TEST_F(OpenClDevices, RefusedProgramsLeaveNoFileOpen) {
    DeviceRuntime runtime;
    size_t before = 0;
    for (int i = 0; i < 20; ++i) {
        if (i == 2) before = open_files();
        EXPECT_THROW(Program(runtime, {.opencl = "kernel void f( {"}), BuildError);
    }
    EXPECT_EQ(open_files(), before);
}

TEST_F(OpenClDevices, ACpuIsSeveralWhereItIsDivided) {
    const unsigned whole = DeviceRuntime().devices()[0].info().units;
    DeviceRuntime runtime({.kinds = {"opencl"}, .compute_units = 1});
    if (whole < 2 || runtime.devices().size() == 1) GTEST_SKIP() << "no device of OpenCL can be divided";
    EXPECT_EQ(runtime.devices().size(), whole);
    const auto program = std::make_shared<Program>(runtime, integer_program());
    std::vector<std::shared_ptr<Buffer>> buffers;
    for (int i = 0; i < 200; ++i) {
        buffers.push_back(std::make_shared<Buffer>(64 * sizeof(int)));
        const auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("fill").arg(0, out(buffers.back())).arg(1, i).work(64);
        task->only_on(runtime.devices()[static_cast<size_t>(i) % whole]);
        runtime.submit(task);
    }
    runtime.finish();
    for (int i = 0; i < 200; ++i)
        EXPECT_EQ(static_cast<const int*>(buffers[static_cast<size_t>(i)]->host())[63], i);
    for (const Device& device : runtime.devices()) {
        EXPECT_EQ(device.info().units, 1u);
        EXPECT_THAT(device.info().name, HasSubstr("1 of its compute units"));
        EXPECT_GT(device.tasks_run(), 0u);
    }
}

TEST_F(OpenClDevices, RandomProgramsGiveWhatTheyGiveInOrder) {
    const TemporaryFolder folder("/tmp/heddle-costs-");
    for (unsigned seed = 0; seed < 6; ++seed) {
        test::RandomProgram program(seed, {.kinds = {"opencl"}, .costs_file = folder.path() + "/costs"},
                                    integer_program());
        program.run(600);
    }
}

/// Its own process: the loader reads its environment once.
int with_both_drivers() {
    DeviceRuntime runtime;
    if (runtime.devices().size() < 2) return 77;
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto all_have_run = [&] {
        return std::ranges::all_of(runtime.devices(), [](const Device& one) { return one.tasks_run() > 0; });
    };
    // The slower one may be a while in coming to its first task.
    for (int wave = 0; wave < 500; ++wave) {
        std::vector<std::shared_ptr<Buffer>> buffers;
        for (int i = 0; i < 200; ++i) {
            buffers.push_back(std::make_shared<Buffer>(64 * sizeof(int)));
            auto task = std::make_shared<DeviceTask>(program);
            task->add_kernel("fill").arg(0, out(buffers.back())).arg(1, i).work(64);
            task->add_kernel("multiply").arg(0, inout(buffers.back())).arg(1, 3).work(64);
            runtime.submit(task);
        }
        runtime.finish();
        for (int i = 0; i < 200; ++i)
            for (size_t k = 0; k < 64; ++k)
                if (static_cast<const int*>(buffers[static_cast<size_t>(i)]->host())[k] != 3 * i) return 1;
        if (all_have_run()) return 0;
    }
    return 2;
}

/// On drivers that work in the host's memory and such that do not, and whose copies go on beside others'
/// work.
int random_programs() {
    const TemporaryFolder folder("/tmp/heddle-costs-");
    // With the costs of the first ones tasks are begun before others have ended.
    for (const bool learn : {false, true})
        for (unsigned seed = 0; seed < 3; ++seed) {
            test::RandomProgram program(seed,
                                        {.kinds = {"opencl"},
                                         .simulated = {{.name = "far", .us_per_byte = 1e-3}},
                                         .learn = learn,
                                         .costs_file = folder.path() + "/costs"},
                                        integer_program());
            program.run(300);
        }
    return ::testing::Test::HasFailure() ? 1 : 0;
}

/// Oclgrind has memory of its own.
int tasks_beside_copies() {
    DeviceRuntime runtime;
    const auto apart = std::ranges::find_if(
        runtime.devices(), [](const Device& device) { return !device.info().shares_host_memory; });
    if (apart == runtime.devices().end()) return 77;
    const auto program = std::make_shared<Program>(runtime, integer_program());
    std::vector<std::shared_ptr<Buffer>> sources, results;
    std::vector<TaskPointer> tasks;
    for (int i = 0; i < 50; ++i) {
        const std::vector<int> values(64, i);
        sources.push_back(std::make_shared<Buffer>(64 * sizeof(int)));
        sources.back()->write(values.data(), 64 * sizeof(int));
        results.push_back(std::make_shared<Buffer>(64 * sizeof(int)));
        tasks.push_back(std::make_shared<DeviceTask>(program));
        tasks.back()->add_kernel("copy").arg(0, in(sources.back())).arg(1, out(results.back())).work(64);
        tasks.back()->only_on(*apart);
    }
    runtime.submit(tasks);
    runtime.finish();
    for (int i = 0; i < 50; ++i) {
        if (sources[static_cast<size_t>(i)]->traffic().to_devices != 1) return 2;
        for (size_t k = 0; k < 64; ++k)
            if (static_cast<const int*>(results[static_cast<size_t>(i)]->host())[k] != i) return 1;
    }
    return 0;
}

class OpenClDrivers : public OpenClDevices {
  protected:
    void SetUp() override {
        OpenClDevices::SetUp();
        if (IsSkipped()) return;
        const char* const oclgrind = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";
        if (!std::filesystem::exists(oclgrind)) GTEST_SKIP() << "oclgrind is not installed";
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        // The test's other process comes here, too, and has the folder of this one.
        if (const char* const given = std::getenv("OCL_ICD_VENDORS");
            given != nullptr && std::string_view(given).starts_with(kFolder))
            return;
        const std::string& path = folder_.emplace(kFolder).path();
        for (const auto& vendor : std::filesystem::directory_iterator("/etc/OpenCL/vendors"))
            std::filesystem::copy(vendor.path(), path + "/" + vendor.path().filename().string());
        std::ofstream(path + "/oclgrind.icd") << oclgrind << "\n";
        ::setenv("OCL_ICD_VENDORS", path.c_str(), 1);
    }
    void TearDown() override { ::unsetenv("OCL_ICD_VENDORS"); }

    static constexpr const char* kFolder = "/tmp/heddle-icd-";
    std::optional<TemporaryFolder> folder_;
};

TEST_F(OpenClDrivers, ShareTheTasksOfOneQueue) {
    EXPECT_EXIT(std::exit(with_both_drivers()), ::testing::ExitedWithCode(0), "");
}

TEST_F(OpenClDrivers, RandomProgramsGiveWhatTheyGiveInOrder) {
    EXPECT_EXIT(std::exit(random_programs()), ::testing::ExitedWithCode(0), "");
}

TEST_F(OpenClDrivers, OneWithMemoryOfItsOwnGetsTheNextTasksData) {
    EXPECT_EXIT(std::exit(tasks_beside_copies()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::devices
