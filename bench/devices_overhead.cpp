// devices.overhead: what heddle adds to an in-order queue of OpenCL for each task of one empty kernel, tasks
// submitted one by one and waited for together. devices.handover: 64 MiB of the caller's memory given to a
// CPU device, written to by a kernel of one item, and back, over a memcpy of them.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstring>
#include <vector>

#include "touch_tasks.hpp"

namespace {

using namespace heddle::bench;
using namespace heddle::devices;

constexpr const char* kSource = "kernel void touch(global int* data) { data[0] += 1; }";

void require(cl_int code, const char* what) {
    if (code != CL_SUCCESS)
        throw heddle::Error(heddle::ErrorCode::kSystem, fmt::format("{} answers {}", what, code));
}

/// An in-order queue as a program that knows OpenCL uses it; it lives as long as the process.
class Raw {
  public:
    Raw() {
        cl_platform_id platform = nullptr;
        cl_device_id device = nullptr;
        require(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
        require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
        cl_int code = CL_SUCCESS;
        cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
        require(code, "clCreateContext");
        queue_ = clCreateCommandQueue(context, device, 0, &code);
        require(code, "clCreateCommandQueue");
        const char* source = kSource;
        cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &code);
        require(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
        kernel_ = clCreateKernel(program, "touch", &code);
        require(code, "clCreateKernel");
        for (cl_mem& buffer : buffers_) {
            buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &code);
            require(code, "clCreateBuffer");
        }
    }

    double us_per_task(int tasks) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < tasks; ++i) {
            cl_mem buffer = buffers_[i % kBuffers];
            const size_t one = 1;
            require(clSetKernelArg(kernel_, 0, sizeof buffer, &buffer), "clSetKernelArg");
            require(clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
                    "clEnqueueNDRangeKernel");
        }
        require(clFinish(queue_), "clFinish");
        return microseconds_since(start) / tasks;
    }

  private:
    cl_command_queue queue_ = nullptr;
    cl_kernel kernel_ = nullptr;
    cl_mem buffers_[kBuffers] = {};
};

class Ours : public TouchTasks {
  public:
    Ours() : TouchTasks("opencl", {.opencl = kSource}) {}

    double handover_us(std::vector<char>& memory) {
        const auto start = std::chrono::steady_clock::now();
        const auto buffer = std::make_shared<Buffer>(memory.data(), memory.size());
        const TaskPointer task = touch(buffer);
        runtime_.submit(task);
        task->wait();
        (void)buffer->host();
        const double us = microseconds_since(start);
        if (buffer->traffic().bytes != 0)
            throw heddle::Error(heddle::ErrorCode::kSystem, "bytes were copied");
        return us;
    }

    [[nodiscard]] bool in_place() const { return runtime_.devices()[0].info().shares_host_memory; }
};

void run(bool quick) {
    constexpr int kRounds = 11;
    Raw raw;
    Ours ours;
    print_added("devices.overhead", quick, raw, ours);
    if (!ours.in_place()) return;
    constexpr size_t kBytes = size_t{64} << 20;
    std::vector<char> memory(kBytes, 1), copy(kBytes, 2);
    std::vector<double> handover, copying;
    for (int round = -1; round < kRounds; ++round) {
        const double own = ours.handover_us(memory);
        const auto start = std::chrono::steady_clock::now();
        std::memcpy(copy.data(), memory.data(), kBytes);
        const double theirs = microseconds_since(start);
        if (round < 0 || copy[kBytes - 1] != 1) continue;
        handover.push_back(own);
        copying.push_back(theirs);
    }
    print({.name = "devices.handover",
           .unit = "us",
           .values = handover,
           .limit = median(copying) / 20,
           .more = {{"memcpy", median(copying)}}});
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, run);
}
