// Calls of OpenCL that block, in tasks, through libheddle_cl as a program has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/compat/CL/cl_heddle.h"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/cl_session.hpp"

namespace heddle {
namespace {

using test::ClSession;
using test::count_one;
using test::cpu_device;
using test::info_of;
using test::status_of;

constexpr int kTasks = 50;
constexpr size_t kSide = 8;
constexpr size_t kBytes = kSide * kSide * sizeof(int);
using Values = std::array<int, kSide * kSide>;

constexpr size_t kZero[3] = {0, 0, 0};
constexpr size_t kRows[3] = {kSide * sizeof(int), kSide, 1};
constexpr size_t kPixels[3] = {kSide, kSide, 1};

class BlockingCalls : public ::testing::Test {
  protected:
    void SetUp() override {
        if (cpu_device() == nullptr) GTEST_SKIP() << "there is no OpenCL device of type CPU";
    }

    static RuntimeOptions one_worker() {
        RuntimeOptions options;
        options.workers = 1;
        return options;
    }

    Runtime runtime{one_worker()};
};

void fails(void* args) {
    clSetNativeKernelStatusHEDDLE(args, -77);
}

cl_int enqueue(ClSession& session, void (*function)(void*), std::atomic<int>* place,
               std::vector<cl_event> after, cl_event* event) {
    return clEnqueueNativeKernelWithType(session.queue, function, &place, sizeof place, 0, nullptr, nullptr,
                                         CL_NATIVE_KERNEL_HEDDLE, static_cast<cl_uint>(after.size()),
                                         after.empty() ? nullptr : after.data(), event);
}

enum class Memory { kBuffer, kImage, kShared };

/// What 50 tasks wait for, and what the next task gives them: a buffer, an image and shared memory that
/// commands fill.
struct Late {
    explicit Late(cl_command_queue_properties properties)
        : session(cpu_device(), properties), in_order(properties == 0) {
        const std::array<cl_queue_properties, 1> none{0};
        other = clCreateCommandQueueWithProperties(session.context, session.device, none.data(), nullptr);
        buffer = session.buffer(kBytes);
        if (info_of<cl_bool>(session.device, CL_DEVICE_IMAGE_SUPPORT) == CL_TRUE) {
            const cl_image_format format{CL_R, CL_SIGNED_INT32};
            cl_image_desc shape{};
            shape.image_type = CL_MEM_OBJECT_IMAGE2D;
            shape.image_width = shape.image_height = kSide;
            image = clCreateImage(session.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, nullptr);
            session.buffers.push_back(image);
        }
        if ((info_of<cl_device_svm_capabilities>(session.device, CL_DEVICE_SVM_CAPABILITIES) &
             CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0)
            shared = clSVMAlloc(session.context, CL_MEM_READ_WRITE, kBytes, 0);
        set = session.kernel("kernel void set(global int* d) { d[get_global_id(0)] = 7; }", "set");
        clSetKernelArg(set, 0, sizeof buffer, &buffer);
        gate = clCreateUserEvent(session.context, nullptr);
    }
    ~Late() {
        for (const auto& [object, from] : mapped)
            clEnqueueUnmapMemObject(session.queue, object, from, 0, nullptr, nullptr);
        clFinish(session.queue);
        clReleaseEvent(gate);
        if (shared != nullptr) clSVMFree(session.context, shared);
        clReleaseCommandQueue(other);
    }

    [[nodiscard]] bool has(Memory memory) const {
        return memory == Memory::kBuffer || (memory == Memory::kImage ? image != nullptr : shared != nullptr);
    }

    bool give() {
        const size_t work = kSide * kSide;
        bool well =
            clEnqueueNDRangeKernel(other, set, 1, nullptr, &work, nullptr, 0, nullptr, nullptr) == CL_SUCCESS;
        if (image != nullptr)
            well = clEnqueueCopyBufferToImage(other, buffer, image, 0, kZero, kPixels, 0, nullptr, nullptr) ==
                       CL_SUCCESS &&
                   well;
        if (shared != nullptr) {
            const int seven = 7;
            well = clEnqueueSVMMemFill(other, shared, &seven, sizeof seven, kBytes, 0, nullptr, nullptr) ==
                       CL_SUCCESS &&
                   well;
        }
        well = clFinish(other) == CL_SUCCESS && well;
        given = true;
        clSetUserEventStatus(gate, CL_COMPLETE);
        return well;
    }

    /// PoCL takes any mapping of the place for the one that ends, also one whose command is still to come,
    /// and frees it: without an order of commands all are to be there before the first ends.
    cl_int unmap(cl_mem object, void* from) {
        if (in_order) return clEnqueueUnmapMemObject(session.queue, object, from, 0, nullptr, nullptr);
        mapped.emplace_back(object, from);
        return CL_SUCCESS;
    }

    ClSession session;
    const bool in_order;
    std::vector<std::pair<cl_mem, void*>> mapped;  ///< and not unmapped yet; the one worker's
    cl_command_queue other = nullptr;
    cl_mem buffer = nullptr, image = nullptr;
    void* shared = nullptr;
    cl_kernel set = nullptr;
    cl_event gate = nullptr;
    std::atomic<bool> given{false};
};

/// Blocks until `late` was given, and puts what it got into the values.
using Blocks = std::function<cl_int(Late& late, Values& values)>;

cl_int mapped(Late& late, cl_mem object, void* from, cl_int code, Values& values) {
    if (from == nullptr || code != CL_SUCCESS) return code == CL_SUCCESS ? CL_MAP_FAILURE : code;
    std::copy_n(static_cast<const int*>(from), values.size(), values.begin());
    return late.unmap(object, from);
}

struct Call {
    const char* name;
    Memory memory;
    Blocks blocks;
};

const std::vector<Call>& calls() {
    static const std::vector<Call> all{
        {"ReadBuffer", Memory::kBuffer,
         [](Late& late, Values& values) {
             return clEnqueueReadBuffer(late.session.queue, late.buffer, CL_TRUE, 0, kBytes, values.data(), 1,
                                        &late.gate, nullptr);
         }},
        {"ReadBufferRect", Memory::kBuffer,
         [](Late& late, Values& values) {
             return clEnqueueReadBufferRect(late.session.queue, late.buffer, CL_TRUE, kZero, kZero, kRows, 0,
                                            0, 0, 0, values.data(), 1, &late.gate, nullptr);
         }},
        {"MapBuffer", Memory::kBuffer,
         [](Late& late, Values& values) {
             cl_int code = CL_SUCCESS;
             void* const from = clEnqueueMapBuffer(late.session.queue, late.buffer, CL_TRUE, CL_MAP_READ, 0,
                                                   kBytes, 1, &late.gate, nullptr, &code);
             return mapped(late, late.buffer, from, code, values);
         }},
        {"WriteBuffer", Memory::kBuffer,
         [](Late& late, Values& values) {
             values.fill(7);
             return clEnqueueWriteBuffer(late.session.queue, late.buffer, CL_TRUE, 0, kBytes, values.data(),
                                         1, &late.gate, nullptr);
         }},
        {"WriteBufferRect", Memory::kBuffer,
         [](Late& late, Values& values) {
             values.fill(7);
             return clEnqueueWriteBufferRect(late.session.queue, late.buffer, CL_TRUE, kZero, kZero, kRows, 0,
                                             0, 0, 0, values.data(), 1, &late.gate, nullptr);
         }},
        {"ReadImage", Memory::kImage,
         [](Late& late, Values& values) {
             return clEnqueueReadImage(late.session.queue, late.image, CL_TRUE, kZero, kPixels, 0, 0,
                                       values.data(), 1, &late.gate, nullptr);
         }},
        {"MapImage", Memory::kImage,
         [](Late& late, Values& values) {
             cl_int code = CL_SUCCESS;
             size_t pitch = 0;
             void* const from = clEnqueueMapImage(late.session.queue, late.image, CL_TRUE, CL_MAP_READ, kZero,
                                                  kPixels, &pitch, nullptr, 1, &late.gate, nullptr, &code);
             return mapped(late, late.image, from, code, values);
         }},
        {"WriteImage", Memory::kImage,
         [](Late& late, Values& values) {
             values.fill(7);
             return clEnqueueWriteImage(late.session.queue, late.image, CL_TRUE, kZero, kPixels, 0, 0,
                                        values.data(), 1, &late.gate, nullptr);
         }},
        {"SVMMemcpy", Memory::kShared,
         [](Late& late, Values& values) {
             return clEnqueueSVMMemcpy(late.session.queue, CL_TRUE, values.data(), late.shared, kBytes, 1,
                                       &late.gate, nullptr);
         }},
        {"SVMMap", Memory::kShared,
         [](Late& late, Values& values) {
             const cl_int code = clEnqueueSVMMap(late.session.queue, CL_TRUE, CL_MAP_READ, late.shared,
                                                 kBytes, 1, &late.gate, nullptr);
             if (code != CL_SUCCESS) return code;
             std::copy_n(static_cast<const int*>(late.shared), values.size(), values.begin());
             return clEnqueueSVMUnmap(late.session.queue, late.shared, 0, nullptr, nullptr);
         }},
    };
    return all;
}

TEST_F(BlockingCalls, ATaskThatIsInOneLeavesItsWorker) {
    for (const Call& call : calls())
        for (const cl_command_queue_properties properties : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
            SCOPED_TRACE(std::string(call.name) + (properties == 0 ? "" : ", out of order"));
            Late late(properties);
            if (!late.has(call.memory)) continue;
            Values all_seven;
            all_seven.fill(7);
            std::atomic<int> failed{0}, early{0}, wrong{0};
            Sequence sequence(runtime);
            for (int i = 0; i < kTasks; ++i)
                sequence.insert([&] {
                    Values values{};
                    if (call.blocks(late, values) != CL_SUCCESS) ++failed;
                    if (!late.given) ++early;
                    if (values != all_seven) ++wrong;
                });
            // With a worker that slept in the first one's call this would never run.
            sequence.insert([&] {
                if (!late.give()) ++failed;
            });
            sequence.wait();
            EXPECT_EQ(failed, 0);
            EXPECT_EQ(early, 0);
            EXPECT_EQ(wrong, 0);
        }
}

TEST_F(BlockingCalls, ATaskThatIsInClFinishLeavesItsWorker) {
    for (const cl_command_queue_properties properties : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
        ClSession session(cpu_device(), properties);
        cl_mem buffer = session.buffer(sizeof(int));
        const int five = 5;
        ASSERT_EQ(
            clEnqueueWriteBuffer(session.queue, buffer, CL_TRUE, 0, sizeof five, &five, 0, nullptr, nullptr),
            CL_SUCCESS);
        cl_event gate = clCreateUserEvent(session.context, nullptr);
        std::atomic<int> ran{0}, failed{0}, early{0};
        Sequence sequence(runtime);
        for (int i = 0; i < kTasks; ++i)
            sequence.insert([&] {
                cl_event event = nullptr;
                int value = 0;
                // The read is kept back until the kernel has ended.
                if (enqueue(session, count_one, &ran, {gate}, &event) != CL_SUCCESS ||
                    clEnqueueReadBuffer(session.queue, buffer, CL_FALSE, 0, sizeof value, &value, 1, &event,
                                        nullptr) != CL_SUCCESS ||
                    clFinish(session.queue) != CL_SUCCESS)
                    ++failed;
                if (status_of(event) != CL_COMPLETE || value != five) ++early;
                clReleaseEvent(event);
            });
        sequence.insert([&] { clSetUserEventStatus(gate, CL_COMPLETE); });
        sequence.wait();
        EXPECT_EQ(failed, 0);
        EXPECT_EQ(early, 0);
        EXPECT_EQ(ran, kTasks);
        clReleaseEvent(gate);
    }
}

TEST_F(BlockingCalls, ClFinishInATaskDoesNotWaitForWhatComesLater) {
    ClSession session(cpu_device(), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event first = clCreateUserEvent(session.context, nullptr),
             second = clCreateUserEvent(session.context, nullptr);
    std::atomic<int> ran{0}, failed{0};
    BlockCondition enqueued;
    Sequence sequence(runtime);
    sequence.insert([&] {
        if (enqueue(session, count_one, &ran, {first}, nullptr) != CL_SUCCESS) ++failed;
        enqueued.signal();
        if (clFinish(session.queue) != CL_SUCCESS) ++failed;
        clSetUserEventStatus(second, CL_COMPLETE);
    });
    sequence.insert([&] {
        enqueued.block();
        if (enqueue(session, count_one, &ran, {second}, nullptr) != CL_SUCCESS) ++failed;
        clSetUserEventStatus(first, CL_COMPLETE);
        if (clFinish(session.queue) != CL_SUCCESS || ran != 2) ++failed;
    });
    sequence.wait();
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(ran, 2);
    clReleaseEvent(first);
    clReleaseEvent(second);
}

/// PoCL tells nobody who asked to be called back.
TEST_F(BlockingCalls, ATaskWhoseEventIsSetToAnErrorGoesOn) {
    ClSession session(cpu_device());
    for (int round = 0; round < 50; ++round) {
        cl_event gate = clCreateUserEvent(session.context, nullptr);
        std::atomic<int> code{CL_SUCCESS};
        Sequence sequence(runtime);
        sequence.insert([&] { code = clWaitForEvents(1, &gate); });
        const auto fail = [gate] { clSetUserEventStatus(gate, -5); };
        // By the same worker, and by another thread at any moment.
        if (round % 2 == 0)
            sequence.insert(fail);
        else
            fail();
        sequence.wait();
        EXPECT_EQ(code, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        clReleaseEvent(gate);
    }
}

/// In a task and outside of one.
void expect_codes_of_blocking_calls(bool in_order) {
    ClSession session(cpu_device(), in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_mem buffer = session.buffer(sizeof(int));
    int value = 5;
    const auto read = [&](cl_command_queue queue, cl_mem from, size_t bytes, cl_uint count,
                          const cl_event* after, cl_event* event) {
        return clEnqueueReadBuffer(queue, from, CL_TRUE, 0, bytes, &value, count, after, event);
    };
    EXPECT_EQ(
        clEnqueueWriteBuffer(session.queue, buffer, CL_TRUE, 0, sizeof value, &value, 0, nullptr, nullptr),
        CL_SUCCESS);
    value = 0;
    cl_event event = nullptr;
    EXPECT_EQ(read(session.queue, buffer, sizeof value, 0, nullptr, &event), CL_SUCCESS);
    EXPECT_EQ(value, 5);
    EXPECT_EQ(status_of(event), CL_COMPLETE);
    clReleaseEvent(event);

    // What the driver refuses.
    EXPECT_EQ(read(nullptr, buffer, sizeof value, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(read(session.queue, nullptr, sizeof value, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(read(session.queue, buffer, 2 * sizeof value, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(read(session.queue, buffer, sizeof value, 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(clFinish(nullptr), CL_INVALID_COMMAND_QUEUE);
    cl_int code = CL_SUCCESS;
    EXPECT_EQ(clEnqueueMapBuffer(session.queue, buffer, CL_TRUE, CL_MAP_READ, 0, 2 * sizeof value, 0, nullptr,
                                 nullptr, &code),
              nullptr);
    EXPECT_EQ(code, CL_INVALID_VALUE);

    // What follows a kernel that fails.
    std::atomic<int> unused{0};
    cl_event failed = nullptr;
    value = 1;
    event = nullptr;
    EXPECT_EQ(enqueue(session, fails, &unused, {}, &failed), CL_SUCCESS);
    EXPECT_EQ(read(session.queue, buffer, sizeof value, 1, &failed, &event),
              CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(event, nullptr);
    EXPECT_EQ(clEnqueueMapBuffer(session.queue, buffer, CL_TRUE, CL_MAP_READ, 0, sizeof value, 1, &failed,
                                 &event, &code),
              nullptr);
    EXPECT_EQ(code, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(event, nullptr);
    EXPECT_EQ(clFinish(session.queue), CL_SUCCESS);
    EXPECT_EQ(read(session.queue, buffer, sizeof value, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(value, 5);
    clReleaseEvent(failed);

    // One that is kept back is refused when it may run.
    cl_event well = nullptr;
    EXPECT_EQ(enqueue(session, count_one, &unused, {}, &well), CL_SUCCESS);
    EXPECT_EQ(read(session.queue, buffer, 2 * sizeof value, 1, &well, nullptr), CL_INVALID_VALUE);
    clReleaseEvent(well);
}

TEST_F(BlockingCalls, TheyAnswerInTasksAsElsewhere) {
    for (const bool in_order : {true, false}) {
        expect_codes_of_blocking_calls(in_order);
        Sequence sequence(runtime);
        sequence.insert([&] { expect_codes_of_blocking_calls(in_order); });
        sequence.wait();
    }
}

}  // namespace
}  // namespace heddle
