// Devices of kind cuda, whoever's driver it is.
#include "cuda_devices.hpp"
#include "support/random_program.hpp"

namespace heddle::devices {
namespace {

using test::CudaDevices;
using test::failure;
using ::testing::HasSubstr;

TEST_F(CudaDevices, TasksAreRunInOrderAndTheirDataFollow) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
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

TEST_F(CudaDevices, RandomProgramsGiveWhatTheyGiveInOrder) {
    for (unsigned seed = 0; seed < 8; ++seed) {
        SCOPED_TRACE(seed);
        if (pretended()) test::of_cuda_driver<void(int)>("fake_cuda_copy_ms")(seed % 2 == 0 ? 1 : 0);
        options_.simulated = {{.name = "far", .us_per_byte = 1e-3},
                              {.name = "near", .shares_host_memory = true}};
        options_.scheduler = make_scheduler(seed % 3 == 0 ? "fcfs" : seed % 3 == 1 ? "heft" : "pams");
        test::RandomProgram program(seed, options_, test::cuda_program());
        program.run(400);
        if (HasFatalFailure()) return;
    }
}

TEST_F(CudaDevices, AKernelRunsInPartsOfAnySize) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
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
        EXPECT_EQ(error.device(), listed().name);
        EXPECT_THAT(error.log(), HasSubstr("program.cu(2): error"));
        EXPECT_THAT(error.what(), HasSubstr(listed().name + ": program.cu(2): error"));
    }
}

TEST(CudaCompiler, TellsWithoutADevice) {
    if (!cuda::compiler().problem.empty()) GTEST_SKIP() << "skipped: " << cuda::compiler().problem;
    EXPECT_EQ(compiler_refusal("cuda", test::cuda_program()), "");
    EXPECT_THAT(compiler_refusal("cuda", {.cuda = "unknown"}), HasSubstr("program.cu(1): error"));
    EXPECT_THAT(failure([] { (void)compiler_refusal("opencl", {}); }), HasSubstr("opencl"));
}

TEST_F(CudaDevices, WrongArgumentsFailTheirTaskAlone) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
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
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
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

}  // namespace
}  // namespace heddle::devices
