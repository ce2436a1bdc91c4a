// Buffers that are images: where tasks that use them run, that they are coherent as a whole, and what kernels
// make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/device_programs.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::integer_program;
using ::testing::Each;
using ::testing::HasSubstr;

/// Of as many 32-bit integers as pixels.
constexpr ImageShape kSmall{
    .width = 8, .height = 4, .channels = ImageChannels::kR, .type = ImageType::kUint32};

TEST(ImageShapes, HaveAsManyBytesAsTheirPixels) {
    EXPECT_EQ((ImageShape{640, 480}.bytes()), 640u * 480 * 4);
    EXPECT_EQ((ImageShape{3, 5, ImageChannels::kRg, ImageType::kHalf}.bytes()), 60u);
    EXPECT_EQ((ImageShape{1, 1, ImageChannels::kBgra, ImageType::kUnorm8}.bytes()), 4u);
    EXPECT_EQ((ImageShape{2, 1, ImageChannels::kRgba, ImageType::kFloat}.bytes()), 32u);
    EXPECT_EQ(kSmall.text(), "8 x 4 pixels of r uint32");
    EXPECT_THAT(failure([] { Buffer none(ImageShape{0, 4}); }), HasSubstr("no image of 0 x 4 pixels"));
    EXPECT_THAT(failure([] {
                    Buffer huge(ImageShape{size_t{1} << 32, size_t{1} << 32});
                }),
                HasSubstr("there is no image of"));
    EXPECT_THAT(failure([] { Buffer none(nullptr, ImageShape{4, 4}); }), HasSubstr("needs memory"));
}

class DeviceImages : public ::testing::Test {
  protected:
    void start(std::vector<SimulatedDevice> devices) {
        runtime_ =
            std::make_unique<DeviceRuntime>(DeviceOptions{.kinds = {}, .simulated = std::move(devices)});
        program_ = std::make_shared<Program>(*runtime_, integer_program());
    }
    [[nodiscard]] TaskPointer add(const std::shared_ptr<Buffer>& image, int by) const {
        auto task = std::make_shared<DeviceTask>(program_, Score{}, "add");
        task->add_kernel("add").arg(0, inout(image)).arg(1, by).work(32);
        return task;
    }

    std::unique_ptr<DeviceRuntime> runtime_;
    std::shared_ptr<Program> program_;
};

TEST_F(DeviceImages, TasksRunWhereThereAreSome) {
    start({{.name = "plain"}, {.name = "graphics", .has_images = true}});
    std::vector<TaskPointer> tasks;
    std::vector<std::shared_ptr<Buffer>> images;
    for (int i = 0; i < 10; ++i) {
        images.push_back(std::make_shared<Buffer>(kSmall));
        tasks.push_back(add(images.back(), i));
        EXPECT_FALSE(tasks.back()->runs_on(runtime_->devices()[0]));
    }
    runtime_->submit(tasks);
    runtime_->finish();
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(tasks[static_cast<size_t>(i)]->device(), 1);
        std::vector<int> found(32);
        images[static_cast<size_t>(i)]->read(found.data(), 128);
        EXPECT_THAT(found, Each(i));
    }
}

TEST_F(DeviceImages, WhereThereAreNoneAnErrorSaysSo) {
    start({{.name = "plain"}});
    const auto image = std::make_shared<Buffer>(kSmall, "photo");
    EXPECT_THAT(
        failure([&] { runtime_->submit(add(image, 1)); }),
        HasSubstr("no device can run task \"add\":\nplain: buffer \"photo\" is an image of 8 x 4 pixels of r "
                  "uint32, and it has no images"));
    // One that is only known when the task has been given to a device.
    auto late = std::make_shared<DeviceTask>(program_);
    late->add_kernel("add").arg(1, 1).work(32);
    late->on_configure([&](Device&, DeviceTask& own) { own.kernel("add").arg(0, inout(image)); });
    runtime_->submit(late);
    EXPECT_THAT(failure([&] { runtime_->finish(); }),
                HasSubstr("plain cannot have an image: it has no images"));
    EXPECT_TRUE(runtime_->devices()[0].alive());
}

TEST_F(DeviceImages, AreCoherentAsAWhole) {
    start({{.name = "one", .has_images = true},
           {.name = "near", .shares_host_memory = true, .has_images = true}});
    std::vector<unsigned> pixels(32, 1);
    const auto image = std::make_shared<Buffer>(pixels.data(), kSmall);
    ASSERT_NE(image->image(), nullptr);
    EXPECT_EQ(image->image()->width, 8u);
    for (size_t i = 0; i < 4; ++i) {
        const TaskPointer task = add(image, 10);
        task->only_on(runtime_->devices()[i / 2]);
        runtime_->submit(task);
    }
    // One pixel is written, the others are the devices'.
    const unsigned seven = 7;
    image->write(&seven, sizeof seven, 4);
    EXPECT_EQ(image->traffic().to_devices, 2u) << "each has memory of its own for it";
    EXPECT_EQ(image->traffic().from_devices, 2u);
    runtime_->submit(add(image, 100));
    runtime_->finish();
    (void)image->host();
    EXPECT_EQ(pixels[0], 141u);
    EXPECT_EQ(pixels[1], 107u);
    EXPECT_EQ(pixels[31], 141u);
    DeviceTask task(program_);
    EXPECT_THAT(failure([&] {
                    task.add_kernel("add").arg(0, in(image, {0, 64}));
                }),
                HasSubstr("is an image, and kernels use all of it"));
}

const char* const kKernels = R"(
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
constant sampler_t linear = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
kernel void negative(read_only image2d_t from, write_only image2d_t to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(to, at, 1.0f - read_imagef(from, nearest, at - (int2)(1, 0)));
}
kernel void between(read_only image2d_t from, write_only image2d_t to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(to, at, read_imagef(from, linear, (float2)(at.x + 1.0f, at.y + 0.5f)));
}
kernel void count(read_only image2d_t from, write_only image2d_t to, int by) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imageui(to, at, read_imageui(from, nearest, at) + (uint4)(by));
}
kernel void plain(global int* data) { data[0] = 1; }
)";

class OpenClImages : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const DeviceInfo& info : list_devices())
            if (info.kind == "opencl" && !info.available) GTEST_SKIP() << info.reason;
        runtime_ = std::make_unique<DeviceRuntime>();
        for (const Device& device : runtime_->devices()) images_ |= device.info().has_images;
        if (!images_) GTEST_SKIP() << "no OpenCL device here has images";
        program_ = std::make_shared<Program>(*runtime_, ProgramSource{.opencl = kKernels});
    }
    Kernel& kernel(const char* name, const ImageShape& shape) {
        task_ = std::make_shared<DeviceTask>(program_);
        return task_->add_kernel(name).work(shape.width, shape.height);
    }
    void run() {
        runtime_->submit(task_);
        runtime_->finish();
    }

    bool images_ = false;
    std::unique_ptr<DeviceRuntime> runtime_;
    std::shared_ptr<Program> program_;
    TaskPointer task_;
};

TEST_F(OpenClImages, AreReadBySamplerAndWritten) {
    constexpr ImageShape kShape{.width = 61, .height = 17};
    std::vector<uint8_t> photo(kShape.bytes()), result(kShape.bytes());
    for (size_t i = 0; i < photo.size(); ++i) photo[i] = static_cast<uint8_t>(i * 37);
    const auto from = std::make_shared<Buffer>(photo.data(), kShape);
    const auto to = std::make_shared<Buffer>(result.data(), kShape);
    kernel("negative", kShape).arg(0, in(from)).arg(1, out(to));
    run();
    (void)to->host();
    for (size_t y = 0; y < kShape.height; ++y)
        for (size_t x = 0; x < kShape.width; ++x)
            for (size_t channel = 0; channel < 4; ++channel) {
                const size_t left = x == 0 ? 0 : x - 1;
                ASSERT_EQ(result[(y * kShape.width + x) * 4 + channel],
                          255 - photo[(y * kShape.width + left) * 4 + channel])
                    << x << ", " << y;
            }
}

TEST_F(OpenClImages, FollowTasksAsOtherBuffersDo) {
    constexpr ImageShape kShape{.width = 16, .height = 3, .type = ImageType::kUint32};
    const auto one = std::make_shared<Buffer>(kShape), other = std::make_shared<Buffer>(kShape);
    for (int i = 0; i < 20; ++i) {
        kernel("count", kShape)
            .arg(0, in(i % 2 == 0 ? one : other))
            .arg(1, out(i % 2 == 0 ? other : one))
            .arg(2, i);
        runtime_->submit(task_);
    }
    runtime_->finish();
    std::vector<uint32_t> found(16 * 3 * 4);
    one->read(found.data(), found.size() * sizeof(uint32_t));
    EXPECT_THAT(found, Each(190u));
    EXPECT_EQ(one->traffic().to_devices, 1u);
}

TEST_F(OpenClImages, OfFloatsAreFiltered) {
    constexpr ImageShape kShape{.width = 8, .height = 2, .type = ImageType::kFloat};
    std::vector<float> values(kShape.bytes() / sizeof(float)), found(values.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 4 % 8);
    const auto from = std::make_shared<Buffer>(values.data(), kShape);
    const auto to = std::make_shared<Buffer>(found.data(), kShape);
    kernel("between", kShape).arg(0, in(from)).arg(1, out(to));
    run();
    (void)to->host();
    for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], std::min(static_cast<float>(i / 4 % 8) + 0.5f, 7.0f), 1e-2) << i;
}

TEST_F(OpenClImages, ArgumentsThatDoNotFitAreNamed) {
    constexpr ImageShape kShape{.width = 4, .height = 4};
    const auto image = std::make_shared<Buffer>(kShape), bytes = std::make_shared<Buffer>(64);
    kernel("negative", kShape).arg(0, in(bytes)).arg(1, out(image));
    EXPECT_THAT(failure([&] { run(); }), HasSubstr("cannot be a buffer on"));
    kernel("plain", kShape).arg(0, inout(image));
    EXPECT_THAT(failure([&] { run(); }), HasSubstr("cannot be an image on"));
}

TEST_F(OpenClImages, ThatAreTooLargeAreRefused) {
    const auto image = std::make_shared<Buffer>(ImageShape{.width = size_t{1} << 24, .height = 1});
    kernel("negative", {1, 1}).arg(0, in(image)).arg(1, out(image));
    EXPECT_THAT(failure([&] { run(); }), HasSubstr("its images have at most"));
}

}  // namespace
}  // namespace heddle::devices
