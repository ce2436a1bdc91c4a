// Commands that the standard refuses in the call, behind a kernel of another runtime, when the driver has not
// seen them yet.
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "heddle/compat/CL/cl_heddle.h"
#include "support/cl_session.hpp"

namespace heddle {
namespace {

using test::ClSession;
using test::cpu_device;

class RefusedCommands : public ::testing::TestWithParam<cl_command_queue_properties> {
  protected:
    void SetUp() override {
        if (cpu_device() == nullptr) GTEST_SKIP() << "there is no OpenCL device of type CPU";
        session.emplace(cpu_device(), GetParam());
        gate = clCreateUserEvent(session->context, nullptr);
        buffer = session->buffer(kBytes);
        ASSERT_EQ(enqueue_native({&gate, 1}, nullptr, &native), CL_SUCCESS);
    }
    void TearDown() override {
        if (!session.has_value()) return;
        clSetUserEventStatus(gate, CL_COMPLETE);
        clReleaseEvent(native);
        clReleaseEvent(gate);
        EXPECT_EQ(clFinish(session->queue), CL_SUCCESS);
    }

    struct Waits {
        const cl_event* events;
        cl_uint count;
    };
    cl_int enqueue_native(Waits after, cl_mem object, cl_event* event) const {
        void* pointer = nullptr;
        const void* place = static_cast<const void*>(&pointer);
        return clEnqueueNativeKernelWithType(
            session->queue, [](void*) {}, static_cast<void*>(&pointer), sizeof pointer,
            object == nullptr ? 0 : 1, object == nullptr ? nullptr : &object,
            object == nullptr ? nullptr : &place, CL_NATIVE_KERNEL_HEDDLE, after.count, after.events, event);
    }
    cl_int read(cl_mem from, size_t offset, void* to) const {
        return clEnqueueReadBuffer(session->queue, from, CL_FALSE, offset, sizeof host, to, 1, &native,
                                   nullptr);
    }
    cl_int write(cl_mem to, size_t offset, const void* from) const {
        return clEnqueueWriteBuffer(session->queue, to, CL_FALSE, offset, sizeof host, from, 1, &native,
                                    nullptr);
    }
    cl_int copy(size_t from, size_t to, size_t bytes) const {
        return clEnqueueCopyBuffer(session->queue, buffer, buffer, from, to, bytes, 1, &native, nullptr);
    }
    cl_int launch(cl_kernel kernel, cl_uint dimensions, size_t work, size_t group) const {
        return clEnqueueNDRangeKernel(session->queue, kernel, dimensions, nullptr, &work,
                                      group == 0 ? nullptr : &group, 1, &native, nullptr);
    }

    static constexpr size_t kBytes = 4096;
    std::optional<ClSession> session;
    cl_event gate = nullptr, native = nullptr;
    cl_mem buffer = nullptr;
    std::array<char, 16> host{};
};

TEST_P(RefusedCommands, CopiesOfWhatIsNotThere) {
    EXPECT_EQ(read(buffer, kBytes - 8, host.data()), CL_INVALID_VALUE);
    EXPECT_EQ(read(buffer, ~size_t{0} - 4, host.data()), CL_INVALID_VALUE);
    EXPECT_EQ(read(buffer, 0, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(read(nullptr, 0, host.data()), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(write(buffer, kBytes - 8, host.data()), CL_INVALID_VALUE);
    EXPECT_EQ(write(nullptr, 0, host.data()), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(copy(0, kBytes - 8, 16), CL_INVALID_VALUE);
    EXPECT_EQ(copy(0, 8, 16), CL_MEM_COPY_OVERLAP);
    cl_mem closed = session->buffers.emplace_back(
        clCreateBuffer(session->context, CL_MEM_HOST_WRITE_ONLY, kBytes, nullptr, nullptr));
    EXPECT_EQ(read(closed, 0, host.data()), CL_INVALID_OPERATION);
    EXPECT_EQ(write(closed, 0, host.data()), CL_SUCCESS);
    EXPECT_EQ(copy(0, 16, 16), CL_SUCCESS);
}

TEST_P(RefusedCommands, KernelsThatCannotBeLaunched) {
    const char* const source = R"(kernel void plain(global int* a, int k) { a[get_global_id(0)] += k; }
        kernel __attribute__((reqd_work_group_size(4, 1, 1))) void fours(global int* a) { a[0] = 1; })";
    const cl_kernel plain = session->kernel(source, "plain");
    const int one = 1;
    EXPECT_EQ(launch(nullptr, 1, 8, 0), CL_INVALID_KERNEL);
    EXPECT_EQ(launch(plain, 1, 8, 0), CL_INVALID_KERNEL_ARGS);
    clSetKernelArg(plain, 1, sizeof one, &one);
    EXPECT_EQ(launch(plain, 1, 8, 0), CL_INVALID_KERNEL_ARGS);
    clSetKernelArg(plain, 0, sizeof buffer, static_cast<const void*>(&buffer));
    EXPECT_EQ(launch(plain, 4, 8, 0), CL_INVALID_WORK_DIMENSION);
    EXPECT_EQ(launch(plain, 1, 8, 3), CL_INVALID_WORK_GROUP_SIZE);
    EXPECT_EQ(launch(plain, 1, 8, 4), CL_SUCCESS);
    const cl_kernel fours = session->kernel(source, "fours");
    clSetKernelArg(fours, 0, sizeof buffer, static_cast<const void*>(&buffer));
    EXPECT_EQ(launch(fours, 1, 8, 2), CL_INVALID_WORK_GROUP_SIZE);
    EXPECT_EQ(launch(fours, 1, 8, 4), CL_SUCCESS);
}

TEST_P(RefusedCommands, WhatIsAnotherContexts) {
    ClSession other(cpu_device());
    cl_event foreign = clCreateUserEvent(other.context, nullptr), none = nullptr;
    EXPECT_EQ(enqueue_native({&foreign, 1}, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(enqueue_native({&none, 1}, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(enqueue_native({nullptr, 0}, other.buffer(kBytes), nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(read(other.buffer(kBytes), 0, host.data()), CL_INVALID_CONTEXT);
    const cl_event both[] = {native, foreign};
    EXPECT_EQ(clEnqueueMarkerWithWaitList(session->queue, 2, both, nullptr), CL_INVALID_CONTEXT);
    clSetUserEventStatus(foreign, CL_COMPLETE);
    clReleaseEvent(foreign);
}

INSTANTIATE_TEST_SUITE_P(Queues, RefusedCommands,
                         ::testing::Values(cl_command_queue_properties{0},
                                           cl_command_queue_properties{
                                               CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}));

}  // namespace
}  // namespace heddle
