// Devices of kind cuda, by a driver and a compiler that pretend to be NVIDIA's: whether each call is right,
// in order and given back. Where NVIDIA's are installed the pretended ones come first (LD_LIBRARY_PATH).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/temporary_folder.hpp"
#include "devices/kinds/cuda/cuda_program.hpp"
#include "heddle/device.hpp"
#include "heddle/device_split.hpp"
#include "support/random_program.hpp"
#include "tonemap/tonemap.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kSource =
    R"(extern "C" __global__ void add(unsigned* data, int by) { data[heddle_global_id(0)] += by; }
extern "C" __global__ void multiply(unsigned* data, int by) { data[heddle_global_id(0)] *= by; }
extern "C" __global__ void fill(unsigned* data, int value) { data[heddle_global_id(0)] = value; }
extern "C" __global__ void copy(const unsigned* from, unsigned* to) { to[heddle_global_id(0)] = from[heddle_global_id(0)]; }
extern "C" __global__ void late(unsigned* data) {}
extern "C" __global__ void crash(unsigned* data) { data[-1] = 0; }
)";

ProgramSource source() {
    ProgramSource source = test::integer_program();
    source.cuda = kSource;
    source.host["crash"] = [](const HostArguments&, const LaunchShape&) {};
    return source;
}

class CudaDevices : public ::testing::Test {
  protected:
    void SetUp() override {
        live_ = reinterpret_cast<int (*)()>(of_driver("fake_cuda_live"));
        if (live_ == nullptr) GTEST_SKIP() << "skipped: the pretended driver is not in LD_LIBRARY_PATH";
        options_.kinds = {"cuda"};
        options_.learn = false;
    }
    void TearDown() override {
        if (live_ == nullptr) return;
        EXPECT_EQ(live_(), 0) << "something was not given back";
        reinterpret_cast<void (*)()>(of_driver("fake_cuda_repair"))();
    }
    template <class Function>
    static Function* of_driver_as(const char* name) {
        return reinterpret_cast<Function*>(of_driver(name));
    }
    /// What the driver's next call of this name does.
    static void answer_next(const char* call, int result) {
        of_driver_as<void(const char*, int)>("fake_cuda_answer")(call, result);
    }
    static void* of_driver(const char* name) {
        static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
        return driver == nullptr ? nullptr : ::dlsym(driver, name);
    }

    DeviceOptions options_;
    int (*live_)() = nullptr;
};

TEST_F(CudaDevices, AreListed) {
    std::vector<DeviceInfo> found;
    for (const DeviceInfo& info : list_devices())
        if (info.kind == "cuda") found.push_back(info);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found[0].available) << found[0].reason;
    EXPECT_EQ(found[0].name, "pretended device");
    EXPECT_EQ(found[0].version, "12.4");
    EXPECT_EQ(found[0].type, DeviceType::kGpu);
    EXPECT_EQ(found[0].units, 12u);
    EXPECT_FALSE(found[0].shares_host_memory);
}

TEST_F(CudaDevices, TasksAreRunInOrderAndTheirDataFollow) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, source());
    std::vector<unsigned> values(1000), copies(1000);
    for (unsigned i = 0; i < values.size(); ++i) values[i] = i;
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    const auto other = std::make_shared<Buffer>(copies.data(), copies.size() * sizeof(unsigned));
    for (unsigned k = 0; k < 50; ++k) {
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("add").arg(0, inout(data)).arg(1, k).work(values.size());
        task->add_kernel("multiply").arg(0, inout(data)).arg(1, 2 * k + 1).work(values.size());
        runtime.submit(task);
    }
    auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("copy").arg(0, in(data)).arg(1, out(other)).work(values.size());
    runtime.submit(task);
    runtime.finish();
    (void)other->host();
    for (unsigned i = 0; i < values.size(); ++i) {
        unsigned expected = i;
        for (unsigned k = 0; k < 50; ++k) expected = (expected + k) * (2 * k + 1);
        ASSERT_EQ(copies[i], expected) << i;
    }
    EXPECT_EQ(data->traffic().bytes, values.size() * sizeof(unsigned))
        << "once to the device, and it stays there";
}

TEST_F(CudaDevices, WhatTheNextTaskReadsIsCopiedWhileAKernelRuns) {
    of_driver_as<void(int)>("fake_cuda_copy_ms")(4);
    const auto beside = of_driver_as<unsigned()>("fake_cuda_copies_beside_kernels");
    const unsigned before = beside();
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, source());
    std::vector<TaskPointer> tasks;
    for (int i = 0; i < 8; ++i) {
        tasks.push_back(std::make_shared<DeviceTask>(program));
        tasks.back()->add_kernel("late").arg(0, in(std::make_shared<Buffer>(64))).work(16);
    }
    runtime.submit(tasks);
    runtime.finish();
    EXPECT_GT(beside(), before);
}

TEST_F(CudaDevices, RandomProgramsGiveWhatTheyGiveInOrder) {
    for (unsigned seed = 0; seed < 8; ++seed) {
        SCOPED_TRACE(seed);
        of_driver_as<void(int)>("fake_cuda_copy_ms")(seed % 2 == 0 ? 1 : 0);
        options_.simulated = {{.name = "far", .us_per_byte = 1e-3},
                              {.name = "near", .shares_host_memory = true}};
        options_.scheduler = make_scheduler(seed % 3 == 0 ? "fcfs" : seed % 3 == 1 ? "heft" : "pams");
        test::RandomProgram program(seed, options_, source());
        program.run(400);
        if (HasFatalFailure()) return;
    }
}

TEST_F(CudaDevices, ACopyThatIsRefusedFailsItsTaskAlone) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, source());
    std::vector<unsigned> values(64, 1);
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    for (int i = 0; i < 2; ++i) {
        if (i == 0) answer_next("cuEventRecord", 1);
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("add").arg(0, inout(data)).arg(1, 4).work(64);
        runtime.submit(task);
        EXPECT_THAT(failure([&] { task->wait(); }), HasSubstr(i == 0 ? "cuEventRecord answers" : "nothing"));
        (void)failure([&] { runtime.finish(); });
    }
    (void)data->host();
    EXPECT_EQ(values[63], 5u);
}

TEST_F(CudaDevices, AKernelRunsInPartsOfAnySize) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, source());
    std::vector<unsigned> values(997, 0);
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    unsigned part = 0;
    for (size_t begin = 0; begin < values.size(); ++part) {
        const size_t size = std::min<size_t>(1 + 53 * part, values.size() - begin);
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("fill").arg(0, inout(data)).arg(1, part + 1).work(size).offset(begin);
        runtime.submit(task);
        begin += size;
    }
    runtime.finish();
    (void)data->host();
    part = 0;
    for (size_t begin = 0; begin < values.size(); ++part) {
        const size_t size = std::min<size_t>(1 + 53 * part, values.size() - begin);
        for (size_t i = 0; i < size; ++i) ASSERT_EQ(values[begin + i], part + 1) << begin + i;
        begin += size;
    }
}

TEST_F(CudaDevices, ABuildErrorNamesTheDeviceAndTheLine) {
    DeviceRuntime runtime(options_);
    try {
        Program bad(runtime, {.cuda = "extern \"C\" __global__ void f(int* a) {\n  a[0] = unknown;\n}\n"});
        FAIL();
    } catch (const BuildError& error) {
        EXPECT_EQ(error.device(), "pretended device");
        EXPECT_THAT(error.log(), HasSubstr("program.cu(2): error"));
        EXPECT_THAT(error.what(), HasSubstr("pretended device: program.cu(2): error"));
    }
}

TEST_F(CudaDevices, TheCompilerTellsWithoutADevice) {
    EXPECT_EQ(compiler_refusal("cuda", source()), "");
    EXPECT_THAT(compiler_refusal("cuda", {.cuda = "unknown"}), HasSubstr("program.cu(1): error"));
    EXPECT_THAT(failure([] { (void)compiler_refusal("opencl", {}); }), HasSubstr("opencl"));
}

TEST_F(CudaDevices, WrongArgumentsFailTheirTaskAlone) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, source());
    std::vector<unsigned> values(64, 1);
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    const auto failed = [&](const auto& describe) {
        auto task = std::make_shared<DeviceTask>(program);
        describe(task->add_kernel("add"));
        runtime.submit(task);
        const std::string message = failure([&] { task->wait(); });
        (void)failure([&] { runtime.finish(); });
        return message;
    };
    EXPECT_THAT(failed([&](Kernel& k) { k.arg(0, inout(data)).work(64); }),
                HasSubstr("kernel \"add\" has 2 arguments, and 1 were set"));
    EXPECT_THAT(failed([&](Kernel& k) { k.arg(0, inout(data)).arg(1, 1.0).work(64); }),
                HasSubstr("argument 1 of kernel \"add\" takes 4 bytes and cannot be a value of 8 bytes"));
    EXPECT_THAT(failed([&](Kernel& k) { k.arg(0, inout(data)).arg(1, inout(data)).work(64); }),
                HasSubstr("cannot be a buffer"));
    EXPECT_THAT(failed([&](Kernel& k) { k.arg(0, inout(data)).arg(1, 1).work(64).group(48); }),
                HasSubstr("64 x 1 x 1 items of kernel \"add\" are no whole groups of 48 x 1 x 1"));
    EXPECT_THAT(failed([&](Kernel& k) {
                    k.arg(0, inout(data)).arg(1, 1).arg(2, LocalMemory{size_t{1} << 32}).work(64);
                }),
                HasSubstr("asks for 4294967296 bytes of local memory"));
    auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("add").arg(0, inout(data)).arg(1, 4).work(64).group(32);
    runtime.submit(task);
    runtime.finish();
    (void)data->host();
    EXPECT_EQ(values[63], 5u);
}

TEST_F(CudaDevices, AnErrorOfAKernelsEndsTheDeviceAndOthersGoOn) {
    options_.simulated = {{.name = "spare"}};
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, source());
    std::vector<unsigned> values(64, 1);
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    const auto scratch = std::make_shared<Buffer>(64 * sizeof(unsigned));
    auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("crash").arg(0, out(scratch)).work(64);
    task->only_on(runtime.devices()[0]);
    runtime.submit(task);
    EXPECT_THAT(failure([&] { task->wait(); }), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT_FALSE(runtime.devices()[0].alive());
    (void)failure([&] { runtime.finish(); });
    auto next = std::make_shared<DeviceTask>(program);
    next->add_kernel("add").arg(0, inout(data)).arg(1, 4).work(64);
    runtime.submit(next);
    runtime.finish();
    EXPECT_EQ(next->device(), 1);
    (void)data->host();
    EXPECT_EQ(values[63], 5u);
}

/// As one that asks for more registers than there are.
TEST_F(CudaDevices, ALaunchThatIsRefusedFailsItsTaskAlone) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, source());
    std::vector<unsigned> values(64, 1);
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    constexpr int kOutOfResources = 701;
    for (int i = 0; i < 2; ++i) {
        if (i == 0) answer_next("cuLaunchKernel", kOutOfResources);
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("add").arg(0, inout(data)).arg(1, 4).work(64);
        runtime.submit(task);
        EXPECT_THAT(failure([&] { task->wait(); }),
                    HasSubstr(i == 0 ? "cuLaunchKernel of \"add\" answers CUDA error 701" : "nothing"));
        (void)failure([&] { runtime.finish(); });
        EXPECT_TRUE(runtime.devices()[0].alive());
    }
    (void)data->host();
    EXPECT_EQ(values[63], 5u);
}

TEST_F(CudaDevices, TasksEndAfterTheirKernelsWhereAnEventWasRefused) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, source());
    const auto ran = of_driver_as<unsigned()>("fake_cuda_kernels_run");
    const unsigned before = ran();
    answer_next("cuEventRecord", 1);
    for (unsigned i = 0; i < 3; ++i) {
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("late").arg(0, out(std::make_shared<Buffer>(64))).work(16);
        runtime.submit(task);
        EXPECT_THAT(failure([&] { task->wait(); }), HasSubstr(i == 0 ? "cuEventRecord answers" : "nothing"));
        EXPECT_EQ(ran(), before + i + 1);
    }
    (void)failure([&] { runtime.finish(); });
}

TEST_F(CudaDevices, TheContextThatAProgramHasEnteredIsStillItsOwn) {
    of_driver_as<void()>("fake_cuda_enter_own")();
    {
        DeviceRuntime runtime(options_);
        const auto program = std::make_shared<Program>(runtime, source());
        std::vector<unsigned> values(64, 1);
        const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("add").arg(0, inout(data)).arg(1, 4).work(64);
        runtime.submit(task);
        (void)data->host();
        EXPECT_EQ(values[63], 5u);
    }
    EXPECT_TRUE(of_driver_as<bool()>("fake_cuda_leave_own")());
}

TEST_F(CudaDevices, OneThatCannotBeUsedIsToldAndKeepsNoOtherFromWork) {
    of_driver_as<void(int)>("fake_cuda_devices")(2);
    std::vector<bool> available;
    for (const DeviceInfo& info : list_devices())
        if (info.kind == "cuda") {
            available.push_back(info.available);
            EXPECT_EQ(info.name, "pretended device");
            if (!info.available) {
                EXPECT_THAT(info.reason, HasSubstr("cuDevicePrimaryCtxRetain answers CUDA error 46"));
            }
        }
    EXPECT_THAT(available, ElementsAre(true, false));
    DeviceRuntime runtime(options_);
    EXPECT_EQ(runtime.devices().size(), 1u);
    EXPECT_THAT(runtime.warnings(), ElementsAre(HasSubstr("cuDevicePrimaryCtxRetain answers CUDA error 46")));
}

/// SetUp and TearDown see whether its module is given back.
TEST_F(CudaDevices, AProgramWithAKernelThatTheDriverDoesNotFindIsRefused) {
    DeviceRuntime runtime(options_);
    EXPECT_THAT(
        failure([&] { Program bad(runtime, {.cuda = "extern \"C\" __global__ void absent(int* a) {}\n"}); }),
        HasSubstr("cuModuleGetFunction answers"));
}

TEST(CudaErrors, ThoseThatEndADeviceAreThoseThatStay) {
    for (const int result : {46, 101, 214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999})
        EXPECT_TRUE(cuda::stays(result)) << result;
    for (const int result : {0, 1, 2, 201, 500, 600, 701, 704, 720, 800, 801, 900})
        EXPECT_FALSE(cuda::stays(result)) << result;
}

TEST(CudaLayout, IsWhatADeviceCanHave) {
    const auto sizes = [](const Extent& work, const Extent& group) {
        const auto [grid, block] = cuda::layout_of("f", {.work = work, .offset = {0, 0, 0}, .group = group});
        return std::vector<size_t>{grid.x, grid.y, grid.z, block.x, block.y, block.z};
    };
    constexpr Extent kOwn{0, 0, 0};
    EXPECT_THAT(sizes({1000, 1, 1}, kOwn), ElementsAre(4, 1, 1, 250, 1, 1));
    EXPECT_THAT(sizes({997, 3, 2}, kOwn), ElementsAre(997, 3, 2, 1, 1, 1));
    EXPECT_THAT(sizes({64, 64, 1}, {16, 8, 1}), ElementsAre(4, 8, 1, 16, 8, 1));
    EXPECT_THAT(sizes({256, 100'000, 1}, kOwn), ElementsAre(1, 50'000, 1, 256, 2, 1));
    EXPECT_THAT(sizes({256, 1, 640'000}, kOwn), ElementsAre(4, 1, 64'000, 64, 1, 10));
    const auto refused = [&](const Extent& work, const Extent& group) {
        return failure([&] { (void)sizes(work, group); });
    };
    constexpr size_t kPrime = 4'294'967'311;  // above 2^32
    EXPECT_THAT(refused({kPrime, 1, 1}, kOwn),
                HasSubstr("4294967311 x 1 x 1 items of kernel \"f\" are too many groups of 1 x 1 x 1"));
    EXPECT_THAT(refused({1, 65'537, 1}, {1, 1, 1}), HasSubstr("are too many"));
    EXPECT_THAT(refused({64, 64, 1}, {64, 32, 1}), HasSubstr("cannot be in groups of 64 x 32 x 1"));
    EXPECT_THAT(refused({16, 16, 1}, {16, 0, 1}), HasSubstr("cannot be in groups of 16 x 0 x 1"));
    EXPECT_THAT(refused({64, 1, 1}, {48, 1, 1}), HasSubstr("are no whole groups of 48 x 1 x 1"));
}

/// PTX of a source with the prelude, by clang, which needs no CUDA for it; "" where it refuses it.
std::string ptx_by_clang(const std::string& source) {
    const TemporaryFolder folder("heddle-cuda");
    const std::string from = folder.path() + "/program.cu", to = folder.path() + "/program.ptx";
    std::ofstream(from) << "#include \"" HEDDLE_SOURCE_DIR "/tests/cuda/clang_builtins.h\"\n"
                        << cuda::with_prelude(source);
    const std::string command =
        "clang -x cuda --cuda-device-only -nocudainc -nocudalib "
        "--cuda-gpu-arch=sm_52 -O2 -S -w -o " +
        to + " " + from;
    if (std::system(command.c_str()) != 0) return "";
    std::stringstream text;
    text << std::ifstream(to).rdbuf();
    return text.str();
}

class CudaPtx : public ::testing::Test {
  protected:
    void SetUp() override {
        if (ptx_by_clang("extern \"C\" __global__ void nothing() {}").empty())
            GTEST_SKIP() << "skipped: clang, with NVPTX, is not installed";
    }
};

TEST_F(CudaPtx, TheKernelsAndTheirParametersAreFound) {
    const auto entries = cuda::entries_of(ptx_by_clang(R"(
        struct Three { double a; int b; float c[2]; };
        extern "C" __global__ void by_value(Three three, unsigned char one, short two, double* to) {
            to[threadIdx.x] = three.a + three.b + one + two;
        }
        extern "C" __global__ void no_parameters() {}
        extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y) {
            unsigned long long i = heddle_global_id(0);
            if (i < n) y[i] += a * x[i];
        }
    )"));
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_THAT(entries.at("saxpy"), ElementsAre(4, 4, 8, 8));
    EXPECT_THAT(entries.at("no_parameters"), ElementsAre());
    EXPECT_THAT(entries.at("by_value"), ElementsAre(24, 1, 2, 8));
}

TEST_F(CudaPtx, WhatStandsBeforeASourceIsDefinedAndMovesNoLine) {
    const std::string ptx = ptx_by_clang(
        "extern \"C\" __global__ void f(int* to) { to[heddle_global_id(2)] = __LINE__ * 1000; }");
    EXPECT_THAT(ptx, HasSubstr(".visible .const .align 8 .b8 heddle_offset[24];"));
    EXPECT_THAT(ptx, HasSubstr(", 1000;"));
}

TEST_F(CudaPtx, TheKernelsOfTheExampleCompile) {
    const auto entries = cuda::entries_of(ptx_by_clang(tonemap::ToneMapper::source().cuda));
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_THAT(entries.at("row_luminance"), ElementsAre(8, 4, 8));
    EXPECT_THAT(entries.at("exposure"), ElementsAre(8, 4, 4, 4, 8));
    EXPECT_THAT(entries.at("map_tones"), ElementsAre(8, 4, 8, 4, 8));
}

TEST(CudaEntries, WhatIsCutOffIsNone) {
    EXPECT_TRUE(cuda::entries_of(".visible .entry cut(").empty());
    EXPECT_TRUE(cuda::entries_of("").empty());
    EXPECT_THAT(cuda::entries_of(".entry f(.param .align 8 .b8 f_param_0[many])").at("f"), ElementsAre(0));
    EXPECT_THAT(
        cuda::entries_of(".entry f(.param .u64 .ptr .align 1 f_param_0, .param .b16 f_param_1)").at("f"),
        ElementsAre(8, 2));
}

}  // namespace
}  // namespace heddle::devices
