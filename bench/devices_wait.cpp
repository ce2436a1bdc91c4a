// devices.wait_in_task: what a worker loses that has other tasks to run while 50 tasks wait for kernels of
// OpenCL. The kernels sleep, so that they take no CPU from the worker; the other tasks compute for longer
// than all kernels take. The share of the time that is longer than that of the computing tasks alone, which
// also pays for enqueuing, pausing and going on. devices.read_in_task: the same with a blocking read behind
// each kernel; devices.finish_in_task: with clFinish. "asleep" is the share where the worker sleeps in each
// wait, as it does without the layer.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "figures.hpp"
#include "heddle/error.hpp"
#include "heddle/task.hpp"

namespace {

using namespace heddle::bench;
using heddle::Runtime;
using heddle::Sequence;

constexpr int kWaits = 50;
constexpr auto kKernel = std::chrono::milliseconds(2);

void require(cl_int code, const char* what) {
    if (code != CL_SUCCESS)
        throw heddle::Error(heddle::ErrorCode::kSystem, fmt::format("{} answers {}", what, code));
}

void sleeps(void*) {
    std::this_thread::sleep_for(kKernel);
}

/// A CPU device with a queue that is not in order; it lives as long as the process.
struct Device {
    Device() {
        cl_uint count = 0;
        require(clGetPlatformIDs(0, nullptr, &count), "clGetPlatformIDs");
        std::vector<cl_platform_id> platforms(count);
        require(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
        cl_int code = CL_DEVICE_NOT_FOUND;
        cl_device_id device = nullptr;
        for (cl_platform_id platform : platforms)
            if (code != CL_SUCCESS) code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr);
        require(code, "clGetDeviceIDs");
        cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
        require(code, "clCreateContext");
        queue = clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
        require(code, "clCreateCommandQueue");
        buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(int), nullptr, &code);
        require(code, "clCreateBuffer");
    }
    [[nodiscard]] cl_event kernel() const {
        cl_event event = nullptr;
        require(clEnqueueNativeKernel(queue, sleeps, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, &event),
                "clEnqueueNativeKernel");
        require(clFlush(queue), "clFlush");
        return event;
    }
    cl_command_queue queue = nullptr;
    cl_mem buffer = nullptr;
};

/// Enqueues a kernel and waits for it, in a task.
using Wait = std::function<void(const Device&)>;

void wait_for_event(const Device& device) {
    cl_event event = device.kernel();
    require(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
}

void read(const Device& device) {
    cl_event event = device.kernel();
    int value = 0;
    require(clEnqueueReadBuffer(device.queue, device.buffer, CL_TRUE, 0, sizeof value, &value, 1, &event,
                                nullptr),
            "clEnqueueReadBuffer");
    clReleaseEvent(event);
}

void finish(const Device& device) {
    clReleaseEvent(device.kernel());
    require(clFinish(device.queue), "clFinish");
}

void sleep_until_over(const Device& device) {
    cl_event event = device.kernel();
    std::atomic<bool> over{false};
    require(clSetEventCallback(
                event, CL_COMPLETE,
                [](cl_event, cl_int, void* data) {
                    auto& flag = *static_cast<std::atomic<bool>*>(data);
                    flag = true;
                    flag.notify_all();
                },
                &over),
            "clSetEventCallback");
    over.wait(false);
    clReleaseEvent(event);
}

std::atomic<double> sink{0};

/// About 100 us.
void compute(int steps) {
    double value = 1;
    for (int i = 0; i < steps; ++i) value = value * 1.0000001 + 1e-9;
    sink = value;
}

double ms_with(Runtime& runtime, const Device& device, const Wait& wait, int tasks, int steps) {
    std::atomic<int> failed{0};
    const auto start = std::chrono::steady_clock::now();
    Sequence sequence(runtime);
    if (wait != nullptr)
        for (int i = 0; i < kWaits; ++i)
            sequence.insert([&] {
                try {
                    wait(device);
                } catch (const heddle::Error&) {
                    ++failed;
                }
            });
    for (int i = 0; i < tasks; ++i) sequence.insert([steps] { compute(steps); });
    sequence.wait();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (failed > 0) throw heddle::Error(heddle::ErrorCode::kSystem, "a task could not wait for its kernel");
    return took.count();
}

void run(bool quick) {
    const int rounds = quick ? 3 : 21;
    constexpr int kTasks = 2000, kSteps = 50'000;
    const Device device;
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
    struct Way {
        const char* name;
        Wait wait;
        std::vector<double> lost{};
    };
    std::vector<Way> ways{{"devices.wait_in_task", wait_for_event},
                          {"devices.read_in_task", read},
                          {"devices.finish_in_task", finish},
                          {"asleep", sleep_until_over}};
    std::vector<double> alone;
    for (int round = -1; round < rounds; ++round) {  // the first one warms up
        for (Way& way : ways) {
            const double base = ms_with(runtime, device, nullptr, kTasks, kSteps);
            const double took = ms_with(runtime, device, way.wait, kTasks, kSteps);
            if (round < 0) continue;
            alone.push_back(base);
            way.lost.push_back((took - base) / took);
        }
    }
    for (size_t i = 0; i + 1 < ways.size(); ++i)
        print({.name = ways[i].name,
               .unit = "of 1",
               .values = ways[i].lost,
               .more = {{"asleep", median(ways.back().lost)}, {"alone_ms", median(alone)}}});
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, run);
}
