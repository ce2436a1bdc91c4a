// Kind cuda on a device of NVIDIA's: what no pretended one can show.
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "cuda_devices.hpp"
#include "heddle/device_split.hpp"
#include "heddle/device_variant.hpp"
#include "tonemap/tonemap.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::of_cuda_driver;
using ::testing::Each;
using ::testing::HasSubstr;

class Nvidia : public test::CudaDevices {
  protected:
    void SetUp() override {
        if (pretended()) GTEST_SKIP() << "skipped: the driver is a pretended one";
        CudaDevices::SetUp();
    }
    static size_t free_bytes() {
        void* context = nullptr;
        size_t free = 0, all = 0;
        EXPECT_EQ(of_cuda_driver<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0), 0);
        EXPECT_EQ(of_cuda_driver<int(void*)>("cuCtxPushCurrent_v2")(context), 0);
        EXPECT_EQ(of_cuda_driver<int(size_t*, size_t*)>("cuMemGetInfo_v2")(&free, &all), 0);
        EXPECT_EQ(of_cuda_driver<int(void**)>("cuCtxPopCurrent_v2")(&context), 0);
        EXPECT_EQ(of_cuda_driver<int(int)>("cuDevicePrimaryCtxRelease_v2")(0), 0);
        return free;
    }
};

TEST_F(Nvidia, IsListedAsItIs) {
    const DeviceInfo info = listed();
    EXPECT_TRUE(info.available) << info.reason;
    EXPECT_THAT(info.name, HasSubstr("NVIDIA"));
    EXPECT_EQ(info.type, DeviceType::kGpu);
    EXPECT_GT(info.units, 0u);
    EXPECT_GT(info.memory_bytes, size_t{1} << 30);
    EXPECT_FALSE(info.shares_host_memory);
}

TEST_F(Nvidia, GroupsHaveLocalMemoryAndBarriers) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, ProgramSource{.cuda = R"(
        extern "C" __global__ void sums(const int* from, int* to) {
            extern __shared__ int part[];
            part[threadIdx.x] = from[heddle_global_id(0)];
            for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
                __syncthreads();
                if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
            }
            if (threadIdx.x == 0) to[heddle_global_id(0) / blockDim.x] = part[0];
        })"});
    constexpr size_t kItems = 1 << 20, kGroup = 512;
    std::vector<int> from(kItems), to(kItems / kGroup, -1);
    std::iota(from.begin(), from.end(), 0);
    const auto input = std::make_shared<Buffer>(from.data(), from.size() * sizeof(int));
    const auto output = std::make_shared<Buffer>(to.data(), to.size() * sizeof(int));
    const auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("sums")
        .arg(0, in(input))
        .arg(1, out(output))
        .arg(2, LocalMemory{kGroup * sizeof(int)})
        .work(kItems)
        .group(kGroup);
    runtime.submit(task);
    runtime.finish();
    (void)output->host();
    for (size_t group = 0; group < to.size(); ++group)
        ASSERT_EQ(to[group], std::accumulate(from.begin() + static_cast<long>(group * kGroup),
                                             from.begin() + static_cast<long>((group + 1) * kGroup), 0));
}

TEST_F(Nvidia, ItemsHaveThreeDimensionsAndValuesAnySize) {
    struct Weights {
        double a;
        int b;
        float c[2];
    };
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, ProgramSource{.cuda = R"(
        struct Weights { double a; int b; float c[2]; };
        extern "C" __global__ void place(Weights w, unsigned char one, short two, double* to) {
            const unsigned long long x = heddle_global_id(0), y = heddle_global_id(1), z = heddle_global_id(2);
            to[(z * 6 + y) * 40 + x] = w.a * x + w.b * y + w.c[1] * z + one + two;
        })"});
    std::vector<double> to(5 * 6 * 40, -1);
    const auto output = std::make_shared<Buffer>(to.data(), to.size() * sizeof(double));
    const Weights weights{0.5, 100, {0, 0.25f}};
    for (const size_t z : {0, 2}) {  // two planes, then three
        const auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("place")
            .arg(0, weights)
            .arg(1, static_cast<unsigned char>(200))
            .arg(2, static_cast<short>(-300))
            .arg(3, inout(output))
            .work(40, 6, z == 0 ? 2 : 3)
            .offset(0, 0, z);
        runtime.submit(task);
    }
    runtime.finish();
    (void)output->host();
    for (size_t z = 0; z < 5; ++z)
        for (size_t y = 0; y < 6; ++y)
            for (size_t x = 0; x < 40; ++x)
                ASSERT_EQ(to[(z * 6 + y) * 40 + x], 0.5 * static_cast<double>(x) +
                                                        100.0 * static_cast<double>(y) +
                                                        0.25 * static_cast<double>(z) + 200 - 300);
}

TEST_F(Nvidia, MoreMemoryThanThereIsFailsItsTaskAlone) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
    const auto huge = std::make_shared<Buffer>(listed().memory_bytes + (size_t{1} << 30));
    const auto run = [&](const std::shared_ptr<Buffer>& buffer) {
        const auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("fill").arg(0, out(buffer)).arg(1, 7).work(64);
        runtime.submit(task);
        return failure([&] { task->wait(); });
    };
    EXPECT_THAT(run(huge), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
    (void)failure([&] { runtime.finish(); });
    EXPECT_TRUE(runtime.devices()[0].alive());
    std::vector<unsigned> values(64, 1);
    EXPECT_EQ(run(std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned))),
              "nothing was thrown");
}

TEST_F(Nvidia, NothingIsLeftOfAHundredRuntimes) {
    size_t before = 0;
    for (int i = 0; i < 100; ++i) {
        if (i == 10) before = free_bytes();
        DeviceRuntime runtime(options_);
        const auto program = std::make_shared<Program>(runtime, test::cuda_program());
        const auto buffer = std::make_shared<Buffer>(size_t{16} << 20);
        const auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("fill").arg(0, out(buffer)).arg(1, 7).work(1024);
        runtime.submit(task);
        runtime.finish();
    }
    EXPECT_GE(free_bytes() + (size_t{64} << 20), before);
}

TEST_F(Nvidia, ManyThreadsSubmitAndEachReadsWhatItAskedFor) {
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int round = 0; round < 20; ++round) {
                std::vector<unsigned> values(1 + random() % 100'000, t);
                const auto buffer = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
                TaskPointer last;
                for (unsigned k = 1; k <= 10; ++k) {
                    last = std::make_shared<DeviceTask>(program);
                    last->add_kernel("add").arg(0, inout(buffer)).arg(1, k).work(values.size());
                    runtime.submit(last);
                }
                last->wait();
                (void)buffer->host();
                for (const unsigned one : values)
                    if (one != t + 55) ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(Nvidia, TheContextThatAProgramHasEnteredIsStillItsOwn) {
    void *own = nullptr, *now = nullptr;
    const auto current = of_cuda_driver<int(void**)>("cuCtxGetCurrent");
    DeviceRuntime runtime(options_);
    ASSERT_EQ(of_cuda_driver<int(void**, unsigned, int)>("cuCtxCreate_v2")(&own, 0, 0), 0);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
    std::vector<unsigned> values(64, 1);
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    const auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("add").arg(0, inout(data)).arg(1, 4).work(64);
    runtime.submit(task);
    (void)data->host();
    EXPECT_THAT(values, Each(5u));
    ASSERT_EQ(current(&now), 0);
    EXPECT_EQ(now, own);
    of_cuda_driver<int(void*)>("cuCtxDestroy_v2")(own);
}

TEST_F(Nvidia, OneKernelIsSplitBetweenItAndOthers) {
    options_.simulated = {{.name = "host", .shares_host_memory = true}};
    DeviceRuntime runtime(options_);
    const auto program = std::make_shared<Program>(runtime, test::cuda_program());
    DeviceSplit split(runtime);
    std::vector<unsigned> values(1 << 20, 1);
    const auto data = std::make_shared<Buffer>(values.data(), values.size() * sizeof(unsigned));
    for (int i = 0; i < 10; ++i)
        split.run(values.size(), [&](size_t first, size_t count) {
            const ByteRange part{first * sizeof(unsigned), count * sizeof(unsigned)};
            auto task = std::make_shared<DeviceTask>(program);
            task->add_kernel("add").arg(0, inout(data, part)).arg(1, 3u).work(count).offset(first);
            return task;
        });
    (void)data->host();
    EXPECT_THAT(values, Each(31u));
    for (const Device& device : runtime.devices()) EXPECT_GT(device.tasks_run(), 0u) << device.info().name;
}

TEST_F(Nvidia, TasksOfTheUnifiedApiRunOnIt) {
    options_.scheduler = make_scheduler("pams");
    for (const Keeping keeping : {Keeping::kCopies, Keeping::kResults}) {
        TaskDevices devices(0, options_, keeping);
        const auto program = std::make_shared<Program>(devices.runtime(), test::cuda_program());
        heddle::Runtime runtime;
        heddle::Vector<int> data(runtime, 1000);
        heddle::Sequence sequence(runtime);
        for (int i = 0; i < 50; ++i) {
            devices.insert(
                sequence, {program, "add", {1000}},
                [](std::span<int> all, int by) {
                    for (int& one : all) one += by;
                },
                heddle::inout(data), heddle::value(i));
            sequence.insert([](std::span<int> all) { all[0] += 1; }, heddle::inout(data));
        }
        sequence.wait();
        EXPECT_EQ(data.get()[0], 49 * 25 + 50);
        EXPECT_EQ(data.get()[999], 49 * 25);
        EXPECT_EQ(devices.runtime().devices()[0].tasks_run(), 50u);
    }
}

TEST_F(Nvidia, APictureIsMappedAsByAPlainLoop) {
    tonemap::HdrPicture picture{640, 333, {}};
    std::mt19937 random(1);
    std::uniform_real_distribution<float> exponent(-6, 6);
    for (size_t i = 0; i < picture.width * picture.height; ++i)
        picture.pixels.push_back(
            {std::exp2(exponent(random)), std::exp2(exponent(random)), std::exp2(exponent(random)), 0});
    const tonemap::Picture expected = tonemap::reference(picture, {});
    for (const bool alone : {true, false}) {
        options_.simulated.clear();
        if (!alone) options_.simulated = {{.name = "host"}};
        DeviceRuntime runtime(options_);
        tonemap::ToneMapper mapper(runtime);
        for (const size_t parts : {0, 0, 1, 8})
            EXPECT_LE(tonemap::greatest_difference(mapper.run(picture, {.parts = parts}), expected), 1);
    }
}

}  // namespace
}  // namespace heddle::devices
