// Kernels of other runtimes among commands in OpenCL, through libheddle_cl as a program has it.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "heddle/compat/CL/cl_heddle.h"
#include "heddle/task.hpp"
#include "support/cl_session.hpp"

namespace heddle {
namespace {

using test::ClSession;
using test::count_one;
using test::cpu_device;
using test::info_of;
using test::status_of;

class NativeKernels : public ::testing::Test {
  protected:
    void SetUp() override {
        if (cpu_device() == nullptr) GTEST_SKIP() << "there is no OpenCL device of type CPU";
    }
};

/// Without arguments that are buffers.
template <class Args>
cl_int enqueue(ClSession& session, void (*function)(void*), Args& args, cl_native_kernel_type type,
               std::vector<cl_event> after, cl_event* event) {
    return clEnqueueNativeKernelWithType(session.queue, function, &args, sizeof args, 0, nullptr, nullptr,
                                         type, static_cast<cl_uint>(after.size()),
                                         after.empty() ? nullptr : after.data(), event);
}

TEST_F(NativeKernels, EachTypeThatTheDeviceNamesRuns) {
    ClSession session(cpu_device());
    const auto bits = info_of<cl_device_exec_capabilities>(session.device, CL_DEVICE_EXECUTION_CAPABILITIES);
    EXPECT_TRUE(bits & CL_EXEC_NATIVE_KERNEL);
    EXPECT_TRUE(bits & CL_EXEC_NATIVE_KERNEL_OMPSS);
    std::atomic<int> ran{0};
    std::atomic<int>* place = &ran;
    int types = 0;
    for (cl_native_kernel_type type = CL_NATIVE_KERNEL_HEDDLE; type <= CL_NATIVE_KERNEL_PARSEC; type <<= 1) {
        cl_event event = nullptr;
        const cl_int code = enqueue(session, count_one, place, type, {}, &event);
        if ((bits & type) == 0) {
            EXPECT_EQ(code, CL_INVALID_OPERATION);
            continue;
        }
        ++types;
        ASSERT_EQ(code, CL_SUCCESS);
        EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
        EXPECT_EQ(status_of(event), CL_COMPLETE);
        EXPECT_EQ(ran, types);
        cl_command_type kind = 0;
        clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof kind, &kind, nullptr);
        EXPECT_EQ(kind, static_cast<cl_command_type>(CL_COMMAND_NATIVE_KERNEL));
        clReleaseEvent(event);
    }
    EXPECT_GE(types, 1);
}

struct DoubleArgs {
    int* data;
    int count;
};

void double_all(void* args) {
    const auto& own = *static_cast<DoubleArgs*>(args);
    for (int i = 0; i < own.count; ++i) own.data[i] *= 2;
}

TEST_F(NativeKernels, TheyTakeTheirTurnInAQueueWithOpenClAndReachItsBuffers) {
    ClSession session(cpu_device());
    constexpr int kCount = 1000;
    std::vector<int> values(kCount), result(kCount);
    std::iota(values.begin(), values.end(), 0);
    cl_mem buffer = session.buffer(kCount * sizeof(int));
    cl_kernel plus = session.kernel("kernel void plus(global int* d) { d[get_global_id(0)] += 1; }", "plus");
    clSetKernelArg(plus, 0, sizeof buffer, &buffer);
    const size_t work = kCount;
    ASSERT_EQ(clEnqueueWriteBuffer(session.queue, buffer, CL_FALSE, 0, kCount * sizeof(int), values.data(), 0,
                                   nullptr, nullptr),
              CL_SUCCESS);
    for (int round = 0; round < 10; ++round) {
        DoubleArgs args{nullptr, kCount};
        const void* place = &args.data;
        ASSERT_EQ(clEnqueueNativeKernelWithType(session.queue, double_all, &args, sizeof args, 1, &buffer,
                                                &place, CL_NATIVE_KERNEL_OMPSS, 0, nullptr, nullptr),
                  CL_SUCCESS);
        args.count = -1;  // it has a copy
        ASSERT_EQ(
            clEnqueueNDRangeKernel(session.queue, plus, 1, nullptr, &work, nullptr, 0, nullptr, nullptr),
            CL_SUCCESS);
    }
    ASSERT_EQ(clEnqueueReadBuffer(session.queue, buffer, CL_TRUE, 0, kCount * sizeof(int), result.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(result[static_cast<size_t>(i)], i * 1024 + 1023);
}

/// What the host may not do with a buffer says nothing of kernels.
TEST_F(NativeKernels, TheyReachBuffersThatTheHostMayNotMap) {
    ClSession session(cpu_device());
    for (const cl_mem_flags closed : {CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY}) {
        const int three = 3;
        int result = 0;
        cl_mem buffer = session.buffers.emplace_back(
            clCreateBuffer(session.context, CL_MEM_READ_WRITE | closed, sizeof(int), nullptr, nullptr));
        cl_mem open = session.buffer(sizeof(int));
        DoubleArgs args{nullptr, 1};
        const void* place = &args.data;
        clEnqueueWriteBuffer(session.queue, open, CL_FALSE, 0, sizeof three, &three, 0, nullptr, nullptr);
        clEnqueueCopyBuffer(session.queue, open, buffer, 0, 0, sizeof(int), 0, nullptr, nullptr);
        cl_event event = nullptr;
        ASSERT_EQ(clEnqueueNativeKernelWithType(session.queue, double_all, &args, sizeof args, 1, &buffer,
                                                &place, CL_NATIVE_KERNEL_HEDDLE, 0, nullptr, &event),
                  CL_SUCCESS);
        clEnqueueCopyBuffer(session.queue, buffer, open, 0, 0, sizeof(int), 0, nullptr, nullptr);
        clEnqueueReadBuffer(session.queue, open, CL_TRUE, 0, sizeof result, &result, 0, nullptr, nullptr);
        EXPECT_EQ(status_of(event), CL_COMPLETE);
        EXPECT_EQ(result, 6);
        clReleaseEvent(event);
    }
}

TEST_F(NativeKernels, WhatTheStandardRefusesIsRefused) {
    ClSession session(cpu_device());
    std::atomic<int> ran{0};
    std::atomic<int>* place = &ran;
    const auto type = CL_NATIVE_KERNEL_HEDDLE;
    const auto call = [&](void (*function)(void*), void* args, size_t bytes, cl_uint objects,
                          const cl_mem* list, const void** places, cl_native_kernel_type of_type) {
        return clEnqueueNativeKernelWithType(session.queue, function, args, bytes, objects, list, places,
                                             of_type, 0, nullptr, nullptr);
    };
    EXPECT_EQ(call(nullptr, nullptr, 0, 0, nullptr, nullptr, type), CL_INVALID_VALUE);
    EXPECT_EQ(call(count_one, nullptr, 8, 0, nullptr, nullptr, type), CL_INVALID_VALUE);
    EXPECT_EQ(call(count_one, &place, 0, 0, nullptr, nullptr, type), CL_INVALID_VALUE);
    EXPECT_EQ(call(count_one, &place, sizeof place, 1, nullptr, nullptr, type), CL_INVALID_VALUE);
    cl_mem buffer = session.buffer(8);
    const void* outside = &ran;
    EXPECT_EQ(call(count_one, &place, sizeof place, 1, &buffer, &outside, type), CL_INVALID_VALUE);
    EXPECT_EQ(call(count_one, &place, sizeof place, 0, nullptr, nullptr, CL_EXEC_NATIVE_KERNEL),
              CL_INVALID_OPERATION);
    EXPECT_EQ(call(count_one, &place, sizeof place, 0, nullptr, nullptr, 3 * type), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueNativeKernelWithType(nullptr, count_one, &place, sizeof place, 0, nullptr, nullptr,
                                            type, 0, nullptr, nullptr),
              CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(clSetNativeKernelStatusHEDDLE(&place, -7), CL_INVALID_VALUE);
    EXPECT_EQ(ran, 0);
}

void throws(void*) {
    throw std::runtime_error("no");
}

struct StatusArgs {
    cl_int status;
};
void says(void* args) {
    clSetNativeKernelStatusHEDDLE(args, static_cast<StatusArgs*>(args)->status);
}

TEST_F(NativeKernels, AFailureReachesAllThatWaitForIt) {
    for (const cl_command_queue_properties properties : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
        ClSession session(cpu_device(), properties);
        int value = 5;
        cl_mem buffer = session.buffer(sizeof value);
        cl_kernel plus = session.kernel("kernel void plus(global int* d) { d[0] += 1; }", "plus");
        clSetKernelArg(plus, 0, sizeof buffer, &buffer);
        const size_t one = 1;
        ASSERT_EQ(clEnqueueWriteBuffer(session.queue, buffer, CL_TRUE, 0, sizeof value, &value, 0, nullptr,
                                       nullptr),
                  CL_SUCCESS);
        cl_event gate = clCreateUserEvent(session.context, nullptr);
        cl_event failed = nullptr, after = nullptr, last = nullptr, marker = nullptr;
        std::atomic<int> ran{0};
        std::atomic<int>* place = &ran;
        ASSERT_EQ(clEnqueueNativeKernelWithType(session.queue, throws, nullptr, 0, 0, nullptr, nullptr,
                                                CL_NATIVE_KERNEL_HEDDLE, 1, &gate, &failed),
                  CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(session.queue, plus, 1, nullptr, &one, nullptr, 1, &failed, &after),
                  CL_SUCCESS);
        ASSERT_EQ(enqueue(session, count_one, place, CL_NATIVE_KERNEL_HEDDLE, {after}, &last), CL_SUCCESS);
        ASSERT_EQ(clEnqueueMarkerWithWaitList(session.queue, 1, &last, &marker), CL_SUCCESS);
        EXPECT_GT(status_of(failed), CL_COMPLETE);
        clSetUserEventStatus(gate, CL_COMPLETE);
        EXPECT_EQ(clWaitForEvents(1, &marker), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_EQ(clWaitForEvents(1, &failed), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_EQ(status_of(failed), CL_NATIVE_KERNEL_FAILED_HEDDLE);
        EXPECT_EQ(status_of(after), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_EQ(status_of(last), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_EQ(ran, 0);
        // What waits for a failure that is known, and what blocks.
        EXPECT_EQ(
            clEnqueueReadBuffer(session.queue, buffer, CL_TRUE, 0, sizeof value, &value, 1, &failed, nullptr),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        // The queue goes on.
        EXPECT_EQ(
            clEnqueueReadBuffer(session.queue, buffer, CL_TRUE, 0, sizeof value, &value, 0, nullptr, nullptr),
            CL_SUCCESS);
        EXPECT_EQ(value, 5);
        for (cl_event event : {gate, failed, after, last, marker}) clReleaseEvent(event);
    }
}

TEST_F(NativeKernels, AKernelInCSaysThatItHasFailed) {
    ClSession session(cpu_device());
    StatusArgs args{-77};
    cl_event event = nullptr;
    ASSERT_EQ(enqueue(session, says, args, CL_NATIVE_KERNEL_HEDDLE, {}, &event), CL_SUCCESS);
    std::atomic<cl_int> told{1};
    clSetEventCallback(
        event, CL_COMPLETE,
        [](cl_event, cl_int status, void* data) { *static_cast<std::atomic<cl_int>*>(data) = status; },
        &told);
    EXPECT_EQ(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(status_of(event), -77);
    while (told == 1) std::this_thread::yield();
    EXPECT_EQ(told, -77);
    clReleaseEvent(event);
}

TEST_F(NativeKernels, CallbacksComeWithTheStatusThatTheyAskedFor) {
    ClSession session(cpu_device());
    cl_event gate = clCreateUserEvent(session.context, nullptr), event = nullptr;
    std::atomic<int> ran{0};
    std::atomic<int>* place = &ran;
    ASSERT_EQ(enqueue(session, count_one, place, CL_NATIVE_KERNEL_HEDDLE, {gate}, &event), CL_SUCCESS);
    struct Told {
        std::mutex mutex;
        std::vector<cl_int> all;
    } told;
    const auto ask = [&](cl_int when) {
        const cl_int code = clSetEventCallback(
            event, when,
            [](cl_event, cl_int status, void* data) {
                Told& to = *static_cast<Told*>(data);
                const std::lock_guard guard(to.mutex);
                to.all.push_back(status);
            },
            &told);
        EXPECT_EQ(code, CL_SUCCESS);
    };
    const auto all = [&] {
        const std::lock_guard guard(told.mutex);
        return told.all;
    };
    for (const cl_int when : {CL_COMPLETE, CL_RUNNING, CL_SUBMITTED}) ask(when);
    EXPECT_EQ(all(), std::vector<cl_int>());
    clSetUserEventStatus(gate, CL_COMPLETE);
    EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
    while (all().size() < 3) std::this_thread::yield();
    EXPECT_EQ(all(), (std::vector<cl_int>{CL_SUBMITTED, CL_RUNNING, CL_COMPLETE}));
    ask(CL_RUNNING);
    while (all().size() < 4) std::this_thread::yield();
    EXPECT_EQ(all().back(), CL_RUNNING);
    for (cl_event one : {gate, event}) clReleaseEvent(one);
}

TEST_F(NativeKernels, WhatWaitsForThemIsKeptWithWhatItWasGiven) {
    ClSession session(cpu_device(), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    constexpr size_t kCount = 64;
    cl_mem buffer = session.buffer(kCount * sizeof(int)), copy = session.buffer(kCount * sizeof(int));
    cl_kernel set =
        session.kernel("kernel void set(global int* d, int v) { d[get_global_id(0)] = v; }", "set");
    cl_event gate = clCreateUserEvent(session.context, nullptr), native = nullptr, filled = nullptr,
             copied = nullptr, read = nullptr;
    std::atomic<int> ran{0};
    std::atomic<int>* place = &ran;
    ASSERT_EQ(enqueue(session, count_one, place, CL_NATIVE_KERNEL_HEDDLE, {gate}, &native), CL_SUCCESS);
    int value = 7;
    size_t work = kCount;
    clSetKernelArg(set, 0, sizeof buffer, &buffer);
    clSetKernelArg(set, 1, sizeof value, &value);
    ASSERT_EQ(clEnqueueNDRangeKernel(session.queue, set, 1, nullptr, &work, nullptr, 1, &native, &filled),
              CL_SUCCESS);
    value = 8;
    work = 1;
    clSetKernelArg(set, 1, sizeof value, &value);
    ASSERT_EQ(
        clEnqueueCopyBuffer(session.queue, buffer, copy, 0, 0, kCount * sizeof(int), 1, &filled, &copied),
        CL_SUCCESS);
    std::vector<int> result(kCount);
    ASSERT_EQ(clEnqueueReadBuffer(session.queue, copy, CL_FALSE, 0, kCount * sizeof(int), result.data(), 1,
                                  &copied, &read),
              CL_SUCCESS);
    EXPECT_EQ(ran, 0);
    clSetUserEventStatus(gate, CL_COMPLETE);
    ASSERT_EQ(clWaitForEvents(1, &read), CL_SUCCESS);
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(result, std::vector<int>(kCount, 7));
    for (cl_event event : {gate, native, filled, copied, read}) clReleaseEvent(event);
}

TEST_F(NativeKernels, TenThousandTakeNoThreadOfTheDrivers) {
    ClSession session(cpu_device());
    std::atomic<int> ran{0};
    std::atomic<int>* place = &ran;
    for (int i = 0; i < 10'000; ++i)
        ASSERT_EQ(enqueue(session, count_one, place, CL_NATIVE_KERNEL_HEDDLE, {}, nullptr), CL_SUCCESS);
    // A kernel in another queue need not wait for them.
    EXPECT_EQ(clFinish(session.queue), CL_SUCCESS);
    EXPECT_EQ(ran, 10'000);
}

TEST_F(NativeKernels, ATaskThatWaitsForAnEventLeavesItsWorker) {
    ClSession session(cpu_device());
    RuntimeOptions options;
    options.workers = 1;
    Runtime runtime(options);
    Sequence sequence(runtime);
    cl_event gate = clCreateUserEvent(session.context, nullptr);
    std::atomic<int> ran{0}, failed{0};
    constexpr int kChildren = 50;
    for (int i = 0; i < kChildren; ++i)
        sequence.insert([&] {
            std::atomic<int>* place = &ran;
            cl_event event = nullptr;
            if (enqueue(session, count_one, place, CL_NATIVE_KERNEL_HEDDLE, {gate}, &event) != CL_SUCCESS ||
                clWaitForEvents(1, &event) != CL_SUCCESS)
                ++failed;
            else
                clReleaseEvent(event);
        });
    // With a worker that slept in the first one's wait this would never run.
    sequence.insert([&] { clSetUserEventStatus(gate, CL_COMPLETE); });
    sequence.wait();
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(ran, kChildren);
    clReleaseEvent(gate);
}

}  // namespace
}  // namespace heddle
