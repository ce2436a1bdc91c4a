// A CPU device of this machine's OpenCL, with what tests need of it: a context, queues, and events that are
// waited for. Where there is none, `device` is null.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <array>
#include <atomic>
#include <string>
#include <vector>

namespace heddle::test {

inline cl_device_id cpu_device() {
    cl_uint count = 0;
    if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return nullptr;
    std::vector<cl_platform_id> platforms(count);
    clGetPlatformIDs(count, platforms.data(), nullptr);
    for (cl_platform_id platform : platforms) {
        cl_device_id device = nullptr;
        if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr) == CL_SUCCESS) return device;
    }
    return nullptr;
}

template <class Value>
Value info_of(cl_device_id device, cl_device_info what) {
    Value value{};
    clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
    return value;
}

inline cl_int status_of(cl_event event) {
    cl_int status = 1;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return status;
}

/// A native kernel; its argument is an std::atomic<int>*.
inline void count_one(void* args) {
    ++**static_cast<std::atomic<int>**>(args);
}

/// A device with a context and a queue.
struct ClSession {
    explicit ClSession(cl_device_id on, cl_command_queue_properties properties = 0) : device(on) {
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
        const std::array<cl_queue_properties, 3> list{CL_QUEUE_PROPERTIES, properties, 0};
        queue = clCreateCommandQueueWithProperties(context, device, list.data(), nullptr);
    }
    ~ClSession() {
        clFinish(queue);
        for (cl_mem one : buffers) clReleaseMemObject(one);
        for (cl_kernel one : kernels) clReleaseKernel(one);
        clReleaseCommandQueue(queue);
        clReleaseContext(context);
    }
    ClSession(const ClSession&) = delete;
    ClSession& operator=(const ClSession&) = delete;

    cl_mem buffer(size_t bytes) {
        return buffers.emplace_back(clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr));
    }
    cl_kernel kernel(const char* source, const char* name) {
        cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
        clBuildProgram(program, 1, &device, "", nullptr, nullptr);
        cl_kernel made = clCreateKernel(program, name, nullptr);
        clReleaseProgram(program);
        return kernels.emplace_back(made);
    }

    cl_device_id device;
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;
    std::vector<cl_mem> buffers;
    std::vector<cl_kernel> kernels;
};

}  // namespace heddle::test
