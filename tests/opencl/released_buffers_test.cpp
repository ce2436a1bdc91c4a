// Buffers that a program releases while commands which are kept back still need them.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>

#include "heddle/compat/CL/cl_heddle.h"
#include "support/cl_session.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using test::ClSession;
using test::cpu_device;

constexpr size_t kCount = 64;
constexpr size_t kValuesBytes = kCount * sizeof(int);
using Values = std::array<int, kCount>;

Values all(int value) {
    Values values;
    values.fill(value);
    return values;
}

/// Two buffers of sevens that tell when they have gone, and a kernel of heddle's that waits at a gate.
class ReleasedBuffers : public ::testing::Test {
  protected:
    void SetUp() override {
        if (cpu_device() == nullptr) GTEST_SKIP() << "there is no OpenCL device of type CPU";
        session.emplace(cpu_device(), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        for (cl_mem& buffer : buffers) {
            Values sevens = all(7);
            buffer =
                clCreateBuffer(session->context, CL_MEM_COPY_HOST_PTR, kValuesBytes, sevens.data(), nullptr);
            clSetMemObjectDestructorCallback(
                buffer, [](cl_mem, void* count) { ++*static_cast<std::atomic<int>*>(count); }, &gone);
        }
        gate = clCreateUserEvent(session->context, nullptr);
        ASSERT_EQ(clEnqueueNativeKernelWithType(
                      session->queue, [](void*) {}, nullptr, 0, 0, nullptr, nullptr, CL_NATIVE_KERNEL_HEDDLE,
                      1, &gate, &native),
                  CL_SUCCESS);
    }
    void TearDown() override {
        if (!session.has_value()) return;
        clReleaseEvent(native);
        clReleaseEvent(gate);
    }

    /// The buffers are there until the command, which was enqueued behind `native`, has ended, and then go.
    void expect_kept_until_the_end_of(cl_event command) {
        for (cl_mem buffer : buffers) clReleaseMemObject(buffer);
        EXPECT_EQ(gone, unused);
        clSetUserEventStatus(gate, CL_COMPLETE);
        EXPECT_EQ(clWaitForEvents(1, &command), CL_SUCCESS);
        clReleaseEvent(command);
        EXPECT_TRUE(test::becomes_true([&] { return gone == 2; }, std::chrono::seconds(20))) << gone;
    }

    /// Adds the second buffer and one to `to`.
    cl_kernel kernel_that_adds_to(cl_mem to) {
        cl_kernel add = session->kernel(
            "kernel void add(global int* to, constant int* from, int more) {"
            "    to[get_global_id(0)] = from[get_global_id(0)] + more; }",
            "add");
        const int one = 1;
        EXPECT_EQ(clSetKernelArg(add, 0, sizeof to, &to), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(add, 1, sizeof(cl_mem), &buffers[1]), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(add, 2, sizeof one, &one), CL_SUCCESS);
        return add;
    }
    /// Behind `native`.
    cl_event enqueued(cl_kernel kernel) {
        const size_t work = kCount;
        cl_event event = nullptr;
        EXPECT_EQ(
            clEnqueueNDRangeKernel(session->queue, kernel, 1, nullptr, &work, nullptr, 1, &native, &event),
            CL_SUCCESS);
        return event;
    }

    std::atomic<int> gone{0};
    int unused = 0;  // buffers that the command has not
    std::optional<ClSession> session;
    std::array<cl_mem, 2> buffers{};
    cl_event gate = nullptr, native = nullptr;
};

TEST_F(ReleasedBuffers, StayForReads) {
    unused = 1;
    Values values{};
    cl_event read = nullptr;
    ASSERT_EQ(clEnqueueReadBuffer(session->queue, buffers[0], CL_FALSE, 0, kValuesBytes, values.data(), 1,
                                  &native, &read),
              CL_SUCCESS);
    expect_kept_until_the_end_of(read);
    EXPECT_EQ(values, all(7));
}

TEST_F(ReleasedBuffers, StayForWrites) {
    unused = 1;
    const Values values = all(8);
    cl_event written = nullptr;
    ASSERT_EQ(clEnqueueWriteBuffer(session->queue, buffers[0], CL_FALSE, 0, kValuesBytes, values.data(), 1,
                                   &native, &written),
              CL_SUCCESS);
    expect_kept_until_the_end_of(written);
}

TEST_F(ReleasedBuffers, StayForCopies) {
    cl_event copied = nullptr;
    ASSERT_EQ(
        clEnqueueCopyBuffer(session->queue, buffers[0], buffers[1], 0, 0, kValuesBytes, 1, &native, &copied),
        CL_SUCCESS);
    expect_kept_until_the_end_of(copied);
}

TEST_F(ReleasedBuffers, StayForKernels) {
    Values values{};
    cl_event added = enqueued(kernel_that_adds_to(buffers[0])), read = nullptr;
    ASSERT_EQ(clEnqueueReadBuffer(session->queue, buffers[0], CL_FALSE, 0, kValuesBytes, values.data(), 1,
                                  &added, &read),
              CL_SUCCESS);
    clReleaseEvent(added);
    expect_kept_until_the_end_of(read);
    EXPECT_EQ(values, all(8));
}

TEST_F(ReleasedBuffers, StayForClonesOfKernels) {
    cl_kernel clone = clCloneKernel(kernel_that_adds_to(buffers[0]), nullptr);
    cl_event added = enqueued(clone);
    clReleaseKernel(clone);
    expect_kept_until_the_end_of(added);
}

/// And the samplers that they have, which tell nobody when they go.
TEST_F(ReleasedBuffers, AsDoSamplers) {
    cl_bool has_images = CL_FALSE;
    clGetDeviceInfo(session->device, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, nullptr);
    if (has_images == CL_FALSE) GTEST_SKIP() << "skipped: the device has no images";
    cl_kernel read = session->kernel(
        "kernel void read(global int* to, read_only image2d_t from, sampler_t sampler) {"
        "    to[get_global_id(0)] = read_imagei(from, sampler, (int2)(get_global_id(0), 0)).x; }",
        "read");
    Values sevens = all(7);
    const cl_image_format format{CL_R, CL_SIGNED_INT32};
    cl_image_desc shape{};
    shape.image_type = CL_MEM_OBJECT_IMAGE2D;
    shape.image_width = kCount;
    shape.image_height = 1;
    cl_int code = CL_SUCCESS;
    cl_mem image =
        clCreateImage(session->context, CL_MEM_COPY_HOST_PTR, &format, &shape, sevens.data(), &code);
    ASSERT_EQ(code, CL_SUCCESS);
    const cl_sampler_properties how[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, 0};
    cl_sampler sampler = clCreateSamplerWithProperties(session->context, how, &code);
    ASSERT_EQ(code, CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(read, 0, sizeof(cl_mem), &buffers[0]), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(read, 1, sizeof image, &image), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(read, 2, sizeof sampler, &sampler), CL_SUCCESS);
    const auto references = [&] {
        cl_uint count = 0;
        clGetSamplerInfo(sampler, CL_SAMPLER_REFERENCE_COUNT, sizeof count, &count, nullptr);
        return count;
    };
    EXPECT_EQ(references(), 1u);
    cl_event ended = enqueued(read);
    EXPECT_EQ(references(), 2u) << "its command's";
    clRetainSampler(sampler);
    clReleaseSampler(sampler);
    clReleaseMemObject(image);
    EXPECT_EQ(references(), 2u);
    clSetUserEventStatus(gate, CL_COMPLETE);
    EXPECT_EQ(clWaitForEvents(1, &ended), CL_SUCCESS);
    clReleaseEvent(ended);
    EXPECT_TRUE(test::becomes_true([&] { return references() == 1; }, std::chrono::seconds(20)));
    clReleaseSampler(sampler);
    for (cl_mem buffer : buffers) clReleaseMemObject(buffer);
}

TEST_F(ReleasedBuffers, ThatAKernelHadBeforeGo) {
    cl_kernel add = kernel_that_adds_to(buffers[0]);
    cl_mem last = session->buffer(kValuesBytes);
    clSetKernelArg(add, 0, sizeof last, &last);
    unused = 1;
    expect_kept_until_the_end_of(enqueued(add));
}

}  // namespace
}  // namespace heddle
