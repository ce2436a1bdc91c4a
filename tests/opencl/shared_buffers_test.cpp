// Kernels of other runtimes that use one buffer at the same time, and many of them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "heddle/compat/CL/cl_heddle.h"
#include "support/cl_session.hpp"

namespace heddle {
namespace {

using test::ClSession;
using test::cpu_device;
using test::status_of;

constexpr cl_command_queue_properties kWithoutOrder = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;

class SharedBuffers : public ::testing::Test {
  protected:
    void SetUp() override {
        if (cpu_device() == nullptr) GTEST_SKIP() << "there is no OpenCL device of type CPU";
    }
};

struct ReadArgs {
    const int* from;
    std::atomic<int>* sum;
};
void read_first(void* args) {
    const auto& own = *static_cast<ReadArgs*>(args);
    *own.sum += *own.from;
}

cl_event enqueue_read(cl_command_queue queue, cl_mem buffer, std::atomic<int>& sum) {
    ReadArgs args{nullptr, &sum};
    const void* place = &args.from;
    cl_event event = nullptr;
    EXPECT_EQ(clEnqueueNativeKernelWithType(queue, read_first, &args, sizeof args, 1, &buffer, &place,
                                            CL_NATIVE_KERNEL_HEDDLE, 0, nullptr, &event),
              CL_SUCCESS);
    return event;
}

void wait_and_release(const std::vector<cl_event>& events) {
    EXPECT_EQ(clWaitForEvents(static_cast<cl_uint>(events.size()), events.data()), CL_SUCCESS);
    for (cl_event event : events) clReleaseEvent(event);
}

/// In two queues, and in one without order.
TEST_F(SharedBuffers, ManyKernelsReadOneAtATime) {
    for (const cl_command_queue_properties properties : {cl_command_queue_properties{0}, kWithoutOrder}) {
        ClSession session(cpu_device(), properties);
        const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
        cl_command_queue other =
            clCreateCommandQueueWithProperties(session.context, session.device, list, nullptr);
        const int one = 1;
        cl_mem buffer = session.buffer(4096);
        ASSERT_EQ(clEnqueueFillBuffer(session.queue, buffer, &one, sizeof one, 0, 4096, 0, nullptr, nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(clFinish(session.queue), CL_SUCCESS);
        constexpr int kRounds = 30, kKernels = 100;
        std::atomic<int> sum{0};
        for (int round = 0; round < kRounds; ++round) {
            std::vector<cl_event> events;
            for (int i = 0; i < kKernels; ++i)
                events.push_back(enqueue_read(i % 2 == 0 ? session.queue : other, buffer, sum));
            wait_and_release(events);
        }
        EXPECT_EQ(sum, kRounds * kKernels);
        clReleaseCommandQueue(other);
    }
}

struct PlacesArgs {
    char *whole, *again, *part, *host, *none;
};
void find_places(void* args) {
    auto& own = *static_cast<PlacesArgs*>(args);
    if (own.whole != own.again || own.part != own.whole + 1024 || own.none != nullptr)
        clSetNativeKernelStatusHEDDLE(args, -77);
    own.host[0] = own.part[0] = 5;
}

TEST_F(SharedBuffers, OneTwiceAPartOfItOneOfTheHostsAndNone) {
    ClSession session(cpu_device());
    cl_mem whole = session.buffer(4096);
    const cl_buffer_region region{1024, 1024};
    cl_mem part = session.buffers.emplace_back(
        clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, nullptr));
    alignas(4096) static char memory[4096];
    cl_mem host = session.buffers.emplace_back(
        clCreateBuffer(session.context, CL_MEM_USE_HOST_PTR, sizeof memory, memory, nullptr));
    PlacesArgs args{};
    args.none = memory;
    const cl_mem list[] = {whole, whole, part, host, nullptr};
    const void* places[] = {&args.whole, &args.again, &args.part, &args.host, &args.none};
    cl_event event = nullptr;
    ASSERT_EQ(clEnqueueNativeKernelWithType(session.queue, find_places, &args, sizeof args, 5, list, places,
                                            CL_NATIVE_KERNEL_HEDDLE, 0, nullptr, &event),
              CL_SUCCESS);
    char found[2] = {};
    EXPECT_EQ(clEnqueueReadBuffer(session.queue, whole, CL_TRUE, 1024, 1, &found[0], 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clEnqueueReadBuffer(session.queue, host, CL_TRUE, 0, 1, &found[1], 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(status_of(event), CL_COMPLETE);
    EXPECT_EQ(found[0], 5);
    EXPECT_EQ(found[1], 5);
    clReleaseEvent(event);
}

/// What follows a kernel and uses its buffer is in the queue before the kernel begins.
TEST_F(SharedBuffers, AKernelReachesABufferThatOthersWaitFor) {
    ClSession session(cpu_device());
    const int seven = 7;
    int result = 0;
    cl_mem buffer = session.buffer(sizeof seven);
    std::atomic<int> sum{0};
    cl_event gate = clCreateUserEvent(session.context, nullptr);
    ASSERT_EQ(
        clEnqueueWriteBuffer(session.queue, buffer, CL_FALSE, 0, sizeof seven, &seven, 1, &gate, nullptr),
        CL_SUCCESS);
    std::vector<cl_event> events;
    for (int i = 0; i < 10; ++i) {
        events.push_back(enqueue_read(session.queue, buffer, sum));
        ASSERT_EQ(clEnqueueReadBuffer(session.queue, buffer, CL_FALSE, 0, sizeof result, &result, 0, nullptr,
                                      &events.emplace_back()),
                  CL_SUCCESS);
    }
    clSetUserEventStatus(gate, CL_COMPLETE);
    wait_and_release(events);
    clReleaseEvent(gate);
    EXPECT_EQ(sum, 70);
    EXPECT_EQ(result, 7);
}

/// With a marker for each PoCL takes minutes.
TEST_F(SharedBuffers, ThousandsInAQueueWithoutOrderTakeNoTimeOfTheQueues) {
    ClSession session(cpu_device(), kWithoutOrder);
    std::atomic<int> ran{0};
    const auto begun = std::chrono::steady_clock::now();
    constexpr int kKernels = 6000;
    for (int i = 0; i < kKernels; ++i) {
        std::atomic<int>* place = &ran;
        ASSERT_EQ(clEnqueueNativeKernelWithType(
                      session.queue, [](void* args) { ++**static_cast<std::atomic<int>**>(args); }, &place,
                      sizeof place, 0, nullptr, nullptr, CL_NATIVE_KERNEL_HEDDLE, 0, nullptr, nullptr),
                  CL_SUCCESS);
    }
    EXPECT_EQ(clFinish(session.queue), CL_SUCCESS);
    EXPECT_EQ(ran, kKernels);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

TEST_F(SharedBuffers, AMarkerOfTheProgramsWaitsForKernelsInAQueueWithoutOrder) {
    ClSession session(cpu_device(), kWithoutOrder);
    cl_event gate = clCreateUserEvent(session.context, nullptr), kernel = nullptr, marker = nullptr;
    ASSERT_EQ(clEnqueueNativeKernelWithType(
                  session.queue, [](void*) {}, nullptr, 0, 0, nullptr, nullptr, CL_NATIVE_KERNEL_HEDDLE, 1,
                  &gate, &kernel),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueMarkerWithWaitList(session.queue, 0, nullptr, &marker), CL_SUCCESS);
    EXPECT_GT(status_of(marker), CL_COMPLETE);
    clSetUserEventStatus(gate, CL_COMPLETE);
    EXPECT_EQ(clWaitForEvents(1, &marker), CL_SUCCESS);
    EXPECT_EQ(status_of(kernel), CL_COMPLETE);
    for (cl_event event : {gate, kernel, marker}) clReleaseEvent(event);
}

}  // namespace
}  // namespace heddle
