// When kernels of other runtimes, and commands that waited for them, were queued and ran.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "heddle/compat/CL/cl_heddle.h"
#include "opencl/driver_clock.hpp"
#include "support/cl_session.hpp"

namespace heddle {
namespace {

using opencl::DriverClock;
using opencl::Instant;
using test::ClSession;
using test::cpu_device;
using test::info_of;

constexpr auto kSleep = std::chrono::milliseconds(20);

void sleeps(void*) {
    std::this_thread::sleep_for(kSleep);
}
void throws_a_number(void*) {
    throw 1;
}

struct Times {
    cl_ulong queued = 0, submit = 0, start = 0, end = 0, complete = 0;
};

Times times_of(cl_event event) {
    Times times;
    const auto ask = [&](cl_profiling_info what, cl_ulong& ns) {
        size_t bytes = 0;
        EXPECT_EQ(clGetEventProfilingInfo(event, what, sizeof ns, &ns, &bytes), CL_SUCCESS) << what;
        EXPECT_EQ(bytes, sizeof ns);
    };
    ask(CL_PROFILING_COMMAND_QUEUED, times.queued);
    ask(CL_PROFILING_COMMAND_SUBMIT, times.submit);
    ask(CL_PROFILING_COMMAND_START, times.start);
    ask(CL_PROFILING_COMMAND_END, times.end);
    ask(CL_PROFILING_COMMAND_COMPLETE, times.complete);
    EXPECT_GT(times.queued, 0u);
    EXPECT_LE(times.queued, times.submit);
    EXPECT_LE(times.submit, times.start);
    EXPECT_LE(times.start, times.end);
    EXPECT_LE(times.end, times.complete);
    return times;
}

cl_int enqueue(ClSession& session, void (*function)(void*), std::vector<cl_event> after, cl_event* event,
               cl_native_kernel_type type = CL_NATIVE_KERNEL_HEDDLE) {
    return clEnqueueNativeKernelWithType(session.queue, function, nullptr, 0, 0, nullptr, nullptr, type,
                                         static_cast<cl_uint>(after.size()),
                                         after.empty() ? nullptr : after.data(), event);
}

class Profiling : public ::testing::Test {
  protected:
    void SetUp() override {
        if (cpu_device() == nullptr) GTEST_SKIP() << "there is no OpenCL device of type CPU";
    }
};

TEST_F(Profiling, KernelsOfEachRuntimeStandBetweenTheirNeighbours) {
    ClSession session(cpu_device(), CL_QUEUE_PROFILING_ENABLE);
    cl_mem buffer = session.buffer(sizeof(int));
    cl_kernel plus = session.kernel("kernel void plus(global int* d) { d[0] += 1; }", "plus");
    clSetKernelArg(plus, 0, sizeof buffer, &buffer);
    const size_t one = 1;
    const auto bits = info_of<cl_device_exec_capabilities>(session.device, CL_DEVICE_EXECUTION_CAPABILITIES);
    for (cl_native_kernel_type type = CL_NATIVE_KERNEL_HEDDLE; type <= CL_NATIVE_KERNEL_PARSEC; type <<= 1) {
        if ((bits & type) == 0) continue;
        SCOPED_TRACE(type);
        cl_event before = nullptr, native = nullptr, after = nullptr;
        ASSERT_EQ(clEnqueueNDRangeKernel(session.queue, plus, 1, nullptr, &one, nullptr, 0, nullptr, &before),
                  CL_SUCCESS);
        ASSERT_EQ(enqueue(session, sleeps, {}, &native, type), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(session.queue, plus, 1, nullptr, &one, nullptr, 0, nullptr, &after),
                  CL_SUCCESS);
        ASSERT_EQ(clFinish(session.queue), CL_SUCCESS);
        const Times first = times_of(before), own = times_of(native), last = times_of(after);
        EXPECT_LE(first.queued, own.queued);
        EXPECT_LE(own.queued, last.queued);
        EXPECT_LE(first.end, own.start);
        EXPECT_LE(own.complete, last.start);
        // A millisecond less, as clocks may be corrected meanwhile.
        EXPECT_GE(std::chrono::nanoseconds(own.end - own.start), kSleep - std::chrono::milliseconds(1));
        for (cl_event event : {before, native, after}) clReleaseEvent(event);
    }
}

TEST_F(Profiling, WhatWaitedForOneStandsBehindIt) {
    for (const cl_command_queue_properties order : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
        ClSession session(cpu_device(), CL_QUEUE_PROFILING_ENABLE | order);
        cl_mem buffer = session.buffer(sizeof(int));
        int value = 3;
        cl_event gate = clCreateUserEvent(session.context, nullptr), native = nullptr, written = nullptr;
        ASSERT_EQ(enqueue(session, sleeps, {gate}, &native), CL_SUCCESS);
        ASSERT_EQ(clEnqueueWriteBuffer(session.queue, buffer, CL_FALSE, 0, sizeof value, &value, 1, &native,
                                       &written),
                  CL_SUCCESS);
        clSetUserEventStatus(gate, CL_COMPLETE);
        ASSERT_EQ(clWaitForEvents(1, &written), CL_SUCCESS);
        const Times first = times_of(native), second = times_of(written);
        EXPECT_LE(second.queued, first.start);
        EXPECT_LE(first.complete, second.submit);
        for (cl_event event : {gate, native, written}) clReleaseEvent(event);
    }
}

TEST_F(Profiling, ThereIsNoneWithoutAProfilingQueueOrBeforeTheEnd) {
    cl_ulong ns = 0;
    const auto ask = [&](cl_event event) {
        return clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof ns, &ns, nullptr);
    };
    {
        ClSession plain(cpu_device());
        cl_event event = nullptr;
        ASSERT_EQ(enqueue(plain, sleeps, {}, &event), CL_SUCCESS);
        ASSERT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
        EXPECT_EQ(ask(event), CL_PROFILING_INFO_NOT_AVAILABLE);
        clReleaseEvent(event);
    }
    ClSession session(cpu_device(), CL_QUEUE_PROFILING_ENABLE);
    cl_event gate = clCreateUserEvent(session.context, nullptr), event = nullptr, failed = nullptr;
    ASSERT_EQ(enqueue(session, sleeps, {gate}, &event), CL_SUCCESS);
    ASSERT_EQ(enqueue(session, throws_a_number, {}, &failed), CL_SUCCESS);
    EXPECT_EQ(ask(event), CL_PROFILING_INFO_NOT_AVAILABLE);
    clSetUserEventStatus(gate, CL_COMPLETE);
    ASSERT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
    EXPECT_EQ(ask(event), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, &failed), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(ask(failed), CL_PROFILING_INFO_NOT_AVAILABLE);
    EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_COMPLETE + 1, sizeof ns, &ns, nullptr),
              CL_INVALID_VALUE);
    EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof ns - 1, &ns, nullptr),
              CL_INVALID_VALUE);
    for (cl_event one : {gate, event, failed}) clReleaseEvent(one);
}

TEST(DriverClocks, AreFoundByWhatTheyShowedBetweenTwoInstants) {
    const Instant before{{1000, 5000, 90'000}}, after{{1200, 5200, 90'200}}, later{{2000, 6000, 91'000}};
    EXPECT_EQ(DriverClock::found(1100, before, after, 1).at(later), 2000u);
    EXPECT_EQ(DriverClock::found(5200, before, after, 1).at(later), 6000u);
    EXPECT_EQ(DriverClock::found(90'000, before, after, 1).at(later), 91'000u);
    // One that counts in steps of 100 may show less, and one that counts otherwise is measured.
    EXPECT_EQ(DriverClock::found(4900, before, after, 100).at(later), 6000u);
    EXPECT_EQ(DriverClock::found(70'000, before, after, 1).at(later), 71'000u);
    EXPECT_EQ(DriverClock::found(10, before, after, 1).at(later), 1010u);
    const Instant now = Instant::now(), then = Instant::now();
    for (size_t i = 0; i < Instant::kClocks.size(); ++i) {
        EXPECT_GT(now.ns[i], 0u);
        EXPECT_LE(now.ns[i], then.ns[i]);
    }
}

}  // namespace
}  // namespace heddle
