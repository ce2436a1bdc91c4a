// User events that a program ends with an error, and barriers: what waits for them directly and through
// commands of the driver, which tells nobody (opencl/event_ends.hpp).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
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
using test::status_of;

constexpr cl_int kError = -5;

/// In queues of both kinds.
class FailedEvents : public ::testing::TestWithParam<cl_command_queue_properties> {
  protected:
    void SetUp() override {
        if (cpu_device() == nullptr) GTEST_SKIP() << "there is no OpenCL device of type CPU";
    }
    [[nodiscard]] cl_event native(ClSession& session, std::vector<cl_event> after) {
        cl_event event = nullptr;
        EXPECT_EQ(clEnqueueNativeKernelWithType(session.queue, count_one, &place_, sizeof place_, 0, nullptr,
                                                nullptr, CL_NATIVE_KERNEL_HEDDLE,
                                                static_cast<cl_uint>(after.size()),
                                                after.empty() ? nullptr : after.data(), &event),
                  CL_SUCCESS);
        return event;
    }
    static void expect_failed(cl_event event) {
        EXPECT_EQ(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_LT(status_of(event), 0);
    }

    /// A write that waits for the gate.
    static void write_behind(ClSession& session, cl_event gate) {
        static const int value = 1;
        EXPECT_EQ(clEnqueueWriteBuffer(session.queue, session.buffer(sizeof(int)), CL_FALSE, 0, sizeof value,
                                       &value, 1, &gate, nullptr),
                  CL_SUCCESS);
    }

    [[nodiscard]] static cl_event read_behind(ClSession& session, cl_event gate) {
        static int value = 1;
        cl_event event = nullptr;
        EXPECT_EQ(clEnqueueReadBuffer(session.queue, session.buffer(sizeof(int)), CL_FALSE, 0, sizeof value,
                                      &value, 1, &gate, &event),
                  CL_SUCCESS);
        return event;
    }

    std::atomic<int> ran_{0};

  private:
    std::atomic<int>* place_ = &ran_;
};
INSTANTIATE_TEST_SUITE_P(Queues, FailedEvents, ::testing::Values(0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE));

/// The first is a task with a small stack.
TEST_P(FailedEvents, AnyNumberFailOneBehindTheOther) {
    ClSession session(cpu_device(), GetParam());
    cl_event gate = clCreateUserEvent(session.context, nullptr);
    cl_event last = nullptr;
    const auto fails = [](void*) { throw std::runtime_error("as it was told to"); };
    EXPECT_EQ(clEnqueueNativeKernelWithType(session.queue, fails, nullptr, 0, 0, nullptr, nullptr,
                                            CL_NATIVE_KERNEL_HEDDLE, 1, &gate, &last),
              CL_SUCCESS);
    for (int i = 0; i < 600; ++i) {
        const cl_event before = last;
        last = read_behind(session, before);
        clReleaseEvent(before);
    }
    clSetUserEventStatus(gate, CL_COMPLETE);
    expect_failed(last);
    clReleaseEvent(last);
    clReleaseEvent(gate);
}

TEST_P(FailedEvents, ANativeKernelBehindOneFails) {
    for (int round = 0; round < 20; ++round) {
        ClSession session(cpu_device(), GetParam());
        cl_event gate = clCreateUserEvent(session.context, nullptr);
        if (round % 2 == 0) clSetUserEventStatus(gate, kError);
        cl_event kernel = native(session, {gate});
        if (round % 2 != 0) clSetUserEventStatus(gate, kError);
        expect_failed(kernel);
        clReleaseEvent(kernel);
        clReleaseEvent(gate);
    }
    EXPECT_EQ(ran_, 0);
}

TEST_P(FailedEvents, ANativeKernelBehindACommandBehindOneFails) {
    ClSession session(cpu_device(), GetParam());
    cl_event gate = clCreateUserEvent(session.context, nullptr);
    cl_event read = read_behind(session, gate);
    cl_event kernel = native(session, {read});
    clSetUserEventStatus(gate, kError);
    expect_failed(kernel);
    // And one that comes later.
    cl_event late = native(session, {read});
    expect_failed(late);
    EXPECT_EQ(ran_, 0);
    for (cl_event event : {gate, read, kernel, late}) clReleaseEvent(event);
}

TEST_P(FailedEvents, ATaskThatWaitsForACommandBehindOneGoesOn) {
    Runtime runtime;
    ClSession session(cpu_device(), GetParam());
    cl_event gate = clCreateUserEvent(session.context, nullptr);
    cl_event read = read_behind(session, gate);
    std::atomic<int> code{CL_SUCCESS};
    std::atomic<bool> begun{false};
    Sequence sequence(runtime);
    sequence.insert([&] {
        begun = true;
        code = clWaitForEvents(1, &read);
    });
    std::jthread setter([&] {
        while (!begun) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        clSetUserEventStatus(gate, kError);
    });
    sequence.wait();
    EXPECT_EQ(code, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    setter.join();
    clReleaseEvent(read);
    clReleaseEvent(gate);
}

/// What the layer has put behind it in the queue is still there.
TEST_P(FailedEvents, OneMayFailWhenTheKernelThatPassedItHasGone) {
    if (GetParam() == 0) GTEST_SKIP() << "the order keeps it back";
    ClSession session(cpu_device(), GetParam());
    cl_event gate = clCreateUserEvent(session.context, nullptr);
    cl_event read = read_behind(session, gate);
    cl_event kernel = native(session, {});
    EXPECT_EQ(clWaitForEvents(1, &kernel), CL_SUCCESS);
    clReleaseEvent(kernel);
    clSetUserEventStatus(gate, kError);
    expect_failed(read);
    clReleaseEvent(read);
    clReleaseEvent(gate);
}

/// Its event looks like a user event to the driver alone.
TEST_P(FailedEvents, TheEndOfANativeKernelIsNotTheProgramsToTell) {
    ClSession session(cpu_device(), GetParam());
    cl_event gate = clCreateUserEvent(session.context, nullptr);
    cl_event kernel = native(session, {gate});
    EXPECT_EQ(clSetUserEventStatus(kernel, CL_COMPLETE), CL_INVALID_EVENT);
    EXPECT_EQ(ran_, 0);
    clSetUserEventStatus(gate, CL_COMPLETE);
    EXPECT_EQ(clWaitForEvents(1, &kernel), CL_SUCCESS);
    EXPECT_EQ(ran_, 1);
    clReleaseEvent(kernel);
    clReleaseEvent(gate);
}

TEST_P(FailedEvents, ANativeKernelIsBehindABarrier) {
    const auto old = [](cl_command_queue queue) { return clEnqueueBarrier(queue); };
    const auto usual = [](cl_command_queue queue) {
        return clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr);
    };
    for (cl_int (*const barrier)(cl_command_queue) : {+old, +usual}) {
        ran_ = 0;
        ClSession session(cpu_device(), GetParam());
        cl_event gate = clCreateUserEvent(session.context, nullptr);
        write_behind(session, gate);
        ASSERT_EQ(barrier(session.queue), CL_SUCCESS);
        cl_event kernel = native(session, {});
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_EQ(ran_, 0);
        clSetUserEventStatus(gate, CL_COMPLETE);
        EXPECT_EQ(clWaitForEvents(1, &kernel), CL_SUCCESS);
        EXPECT_EQ(ran_, 1);
        clReleaseEvent(kernel);
        clReleaseEvent(gate);
    }
}

/// A barrier that is not there keeps nothing back.
TEST_P(FailedEvents, WithoutABarrierANativeKernelPassesOthers) {
    if (GetParam() == 0) GTEST_SKIP() << "the order keeps it back";
    ClSession session(cpu_device(), GetParam());
    cl_event gate = clCreateUserEvent(session.context, nullptr);
    write_behind(session, gate);
    cl_event kernel = native(session, {});
    EXPECT_EQ(clWaitForEvents(1, &kernel), CL_SUCCESS);
    EXPECT_EQ(ran_, 1);
    clSetUserEventStatus(gate, CL_COMPLETE);
    clReleaseEvent(kernel);
    clReleaseEvent(gate);
}

}  // namespace
}  // namespace heddle
