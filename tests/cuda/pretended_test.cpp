// Kind cuda with a driver and a compiler that pretend to be NVIDIA's: whether each call is right, in order
// and given back, and what is done where one is refused.
#include "base/temporary_folder.hpp"
#include "cuda_devices.hpp"
#include "devices/kinds/cuda/cuda_program.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::of_cuda_driver;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PretendedCuda : public test::CudaDevices {
  protected:
    void SetUp() override {
        if (!pretended()) GTEST_SKIP() << "skipped: the pretended driver is not in LD_LIBRARY_PATH";
        CudaDevices::SetUp();
    }
    /// What the driver's next call of this name does.
    static void answer_next(const char* call, int result) {
        of_cuda_driver<void(const char*, int)>("fake_cuda_answer")(call, result);
    }
};

TEST_F(PretendedCuda, AreListed) {
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

TEST_F(PretendedCuda, WhatTheNextTaskReadsIsCopiedWhileAKernelRuns) {
    of_cuda_driver<void(int)>("fake_cuda_copy_ms")(4);
    const auto beside = of_cuda_driver<unsigned()>("fake_cuda_copies_beside_kernels");
    const unsigned before = beside();
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
    std::vector<TaskPointer> tasks;
    for (int i = 0; i < 8; ++i) {
        tasks.push_back(std::make_shared<DeviceTask>(program));
        tasks.back()->add_kernel("late").arg(0, in(std::make_shared<Buffer>(64))).work(16);
    }
    runtime.submit(tasks);
    runtime.finish();
    EXPECT_GT(beside(), before);
}

TEST_F(PretendedCuda, ACopyThatIsRefusedFailsItsTaskAlone) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
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

/// As one that asks for more registers than there are.
TEST_F(PretendedCuda, ALaunchThatIsRefusedFailsItsTaskAlone) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
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

TEST_F(PretendedCuda, TasksEndAfterTheirKernelsWhereAnEventWasRefused) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
    const auto ran = of_cuda_driver<unsigned()>("fake_cuda_kernels_run");
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

/// Some of them have gone ahead, and are in flight behind the one whose event is refused.
TEST_F(PretendedCuda, TasksFailWithTheOneThatTheyFollow) {
    const TemporaryFolder folder("/tmp/heddle-costs-");
    options_.learn = true;
    options_.costs_file = folder.path() + "/costs";
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
    const auto data = std::make_shared<Buffer>(64 * sizeof(unsigned));
    const auto chain = [&] {
        std::vector<TaskPointer> tasks;
        for (int i = 0; i < 20; ++i) {
            tasks.push_back(std::make_shared<DeviceTask>(program));
            tasks.back()->add_kernel("add").arg(0, inout(data)).arg(1, 1).work(64);
        }
        runtime.submit(tasks);
        return tasks;
    };
    unsigned sum = 0;
    for (int round = 0; round < 20; ++round) {
        (void)chain();
        runtime.finish();
        sum += 20;
        ASSERT_EQ(static_cast<const unsigned*>(data->host())[63], sum);
        answer_next("cuEventRecord", 1);
        const auto failing = chain();
        EXPECT_THAT(failure([&] { runtime.finish(); }), HasSubstr("cuEventRecord answers"));
        for (const TaskPointer& task : failing) EXPECT_EQ(task->status(), TaskStatus::kFailed);
        sum = 0;
        data->write(std::vector<unsigned>(64).data(), 64 * sizeof(unsigned));
    }
    EXPECT_TRUE(runtime.devices()[0].alive());
}

TEST_F(PretendedCuda, TheContextThatAProgramHasEnteredIsStillItsOwn) {
    of_cuda_driver<void()>("fake_cuda_enter_own")();
    {
        DeviceRuntime runtime(options_);
        const auto program = std::make_shared<Program>(runtime, test::cuda_program());
        std::vector<unsigned> values(64, 1);
        const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("add").arg(0, inout(data)).arg(1, 4).work(64);
        runtime.submit(task);
        (void)data->host();
        EXPECT_EQ(values[63], 5u);
    }
    EXPECT_TRUE(of_cuda_driver<bool()>("fake_cuda_leave_own")());
}

TEST_F(PretendedCuda, OneThatCannotBeUsedIsToldAndKeepsNoOtherFromWork) {
    of_cuda_driver<void(int)>("fake_cuda_devices")(2);
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

/// Where that is refused it goes through the host.
TEST_F(PretendedCuda, WhatOneDeviceHasComesToAnotherStraightFromThere) {
    of_cuda_driver<void(int)>("fake_cuda_usable_devices")(2);
    const auto across = of_cuda_driver<unsigned()>("fake_cuda_copies_across");
    DeviceRuntime runtime(options_);
    ASSERT_EQ(runtime.devices().size(), 2u);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
    std::vector<unsigned> values(64, 1);
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    const unsigned before = across();
    for (unsigned i = 0; i < 8; ++i) {
        if (i == 4) answer_next("cuMemcpyPeerAsync", 1);
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("add").arg(0, inout(data)).arg(1, 1).work(64);
        task->only_on(runtime.devices()[i % 2]);
        runtime.submit(task);
        task->wait();
    }
    EXPECT_EQ(across() - before, 6u);
    EXPECT_EQ(data->traffic().between_devices, 6u);
    EXPECT_EQ(data->traffic().to_devices, 2u);    // at first, and when it was refused
    EXPECT_EQ(data->traffic().from_devices, 1u);  // the same
    (void)data->host();
    EXPECT_EQ(values[63], 9u);
}

/// SetUp and TearDown see whether its module is given back.
TEST_F(PretendedCuda, AProgramWithAKernelThatTheDriverDoesNotFindIsRefused) {
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

}  // namespace
}  // namespace heddle::devices
