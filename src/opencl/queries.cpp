// What a program asks of devices, sub-devices and events, so far as the layer knows it better than the
// driver.
#include <sched.h>

#include <cstring>
#include <vector>

#include "heddle/compat/CL/cl_heddle.h"
#include "opencl/engines.hpp"
#include "opencl/enqueue.hpp"
#include "opencl/event_ends.hpp"
#include "opencl/held_command.hpp"
#include "opencl/sub_devices.hpp"
#include "opencl/waits.hpp"

namespace heddle::opencl {

cl_int answer(const void* value, size_t bytes, size_t room, void* to, size_t* bytes_ret) {
    if (to != nullptr && room < bytes) return CL_INVALID_VALUE;
    if (to != nullptr) std::memcpy(to, value, bytes);
    if (bytes_ret != nullptr) *bytes_ret = bytes;
    return CL_SUCCESS;
}

namespace {

struct Asked {
    size_t room;
    void* to;
    size_t* bytes_ret;
    template <class Value>
    [[nodiscard]] cl_int with(const Value& value) const {
        return answer(static_cast<const void*>(&value), sizeof value, room, to, bytes_ret);
    }
    template <class Value>
    [[nodiscard]] cl_int with_all(const std::vector<Value>& values) const {
        return answer(values.data(), values.size() * sizeof(Value), room, to, bytes_ret);
    }
};

bool is_cpu(cl_device_id device) {
    return (device_value<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
}

cl_int device_info(cl_device_id device, cl_device_info what, size_t room, void* to, size_t* bytes_ret) {
    const Asked asked{room, to, bytes_ret};
    const auto driver = [&] { return next().clGetDeviceInfo(device, what, room, to, bytes_ret); };
    if (device == nullptr) return driver();
    const std::shared_ptr<SubDevice> sub = SubDevice::of(device);
    switch (what) {
        case CL_DEVICE_EXECUTION_CAPABILITIES:
            if (!is_cpu(device)) return driver();
            return asked.with(device_value<cl_device_exec_capabilities>(device, what) | engine_bits());
        case CL_DEVICE_CPU_SET_HEDDLE: {
            if (!is_cpu(device)) return CL_INVALID_VALUE;
            cpu_set_t set;
            CPU_ZERO(&set);
            for (const int cpu : cpus_of_device(device))
                if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
            return asked.with(set);
        }
        case CL_DEVICE_MAX_COMPUTE_UNITS:
            return partitions(device) ? asked.with(static_cast<cl_uint>(cpus_of_device(device).count()))
                                      : driver();
        case CL_DEVICE_PARTITION_PROPERTIES:
            if (!partitions(device)) return driver();
            return asked.with_all(std::vector<cl_device_partition_property>{
                CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_PARTITION_BY_COUNTS,
                CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_PARTITION_BY_NAMES_HEDDLE,
                CL_DEVICE_PARTITION_BY_CPU_SET_HEDDLE});
        case CL_DEVICE_PARTITION_AFFINITY_DOMAIN:
            if (!partitions(device)) return driver();
            return asked.with(cl_device_affinity_domain{CL_DEVICE_AFFINITY_DOMAIN_NUMA |
                                                        CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE});
        case CL_DEVICE_PARTITION_TYPE:
            return sub != nullptr ? asked.with_all(sub->how()) : driver();
        case CL_DEVICE_PARENT_DEVICE:
            return sub != nullptr ? asked.with(sub->parent()) : driver();
        case CL_DEVICE_REFERENCE_COUNT:
            return sub != nullptr ? asked.with(sub->references()) : driver();
        default:
            return driver();
    }
}

cl_int event_info(cl_event event, cl_event_info what, size_t room, void* to, size_t* bytes_ret) {
    const Asked asked{room, to, bytes_ret};
    const std::shared_ptr<HeldCommand> held = HeldCommand::of(event);
    if (held != nullptr) {
        switch (what) {
            case CL_EVENT_COMMAND_EXECUTION_STATUS:
                return asked.with(held->status());
            case CL_EVENT_COMMAND_TYPE:
                return asked.with(held->type());
            case CL_EVENT_COMMAND_QUEUE:
                return asked.with(held->queue());
            case CL_EVENT_REFERENCE_COUNT:
                return asked.with(held->references());
            default:
                break;
        }
    }
    return next().clGetEventInfo(event, what, room, to, bytes_ret);
}

cl_int profiling_info(cl_event event, cl_profiling_info what, size_t room, void* to, size_t* bytes_ret) {
    const std::shared_ptr<HeldCommand> held = HeldCommand::of(event);
    if (held == nullptr) return next().clGetEventProfilingInfo(event, what, room, to, bytes_ret);
    if (what < CL_PROFILING_COMMAND_QUEUED || what > CL_PROFILING_COMMAND_COMPLETE) return CL_INVALID_VALUE;
    if (held->times() == nullptr || held->status() != CL_COMPLETE) return CL_PROFILING_INFO_NOT_AVAILABLE;
    cl_ulong ns = 0;
    const cl_int code = held->times()->ask(what, ns);
    return code != CL_SUCCESS ? code : Asked{room, to, bytes_ret}.with(ns);
}

void* extension(const char* name, void* drivers) {
    if (name == nullptr) return drivers;
    if (std::strcmp(name, "clEnqueueNativeKernelWithType") == 0)
        return reinterpret_cast<void*>(&clEnqueueNativeKernelWithType);
    if (std::strcmp(name, "clSetNativeKernelStatusHEDDLE") == 0)
        return reinterpret_cast<void*>(&clSetNativeKernelStatusHEDDLE);
    return drivers;
}

}  // namespace

void intercept_queries(cl_icd_dispatch& table) {
    table.clGetDeviceInfo = device_info;
    table.clCreateSubDevices = [](cl_device_id device, const cl_device_partition_property* properties,
                                  cl_uint room, cl_device_id* devices, cl_uint* count) -> cl_int {
        return device != nullptr && partitions(device)
                   ? create_sub_devices(device, properties, room, devices, count)
                   : next().clCreateSubDevices(device, properties, room, devices, count);
    };
    table.clRetainDevice = [](cl_device_id device) -> cl_int {
        const std::shared_ptr<SubDevice> sub = SubDevice::of(device);
        if (sub == nullptr) return next().clRetainDevice(device);
        sub->retain();
        return CL_SUCCESS;
    };
    table.clReleaseDevice = [](cl_device_id device) -> cl_int {
        const std::shared_ptr<SubDevice> sub = SubDevice::of(device);
        if (sub == nullptr) return next().clReleaseDevice(device);
        sub->release();
        return CL_SUCCESS;
    };
    table.clGetEventInfo = event_info;
    table.clGetEventProfilingInfo = profiling_info;
    table.clRetainEvent = [](cl_event event) -> cl_int {
        const std::shared_ptr<HeldCommand> held = HeldCommand::of(event);
        if (held == nullptr) return next().clRetainEvent(event);
        held->retain();
        return CL_SUCCESS;
    };
    table.clReleaseEvent = [](cl_event event) -> cl_int { return HeldCommand::release(event); };
    table.clSetEventCallback = [](cl_event event, cl_int when, HeldCommand::Callback callback,
                                  void* data) -> cl_int {
        const std::shared_ptr<HeldCommand> held = HeldCommand::of(event);
        return held != nullptr && callback != nullptr
                   ? held->on_status(when, callback, data)
                   : next().clSetEventCallback(event, when, callback, data);
    };
    table.clWaitForEvents = [](cl_uint count, const cl_event* events) -> cl_int {
        return count == 0 || events == nullptr ? next().clWaitForEvents(count, events)
                                               : wait_for({events, count});
    };
    table.clSetUserEventStatus = [](cl_event event, cl_int status) -> cl_int {
        if (HeldCommand::of(event) != nullptr) return CL_INVALID_EVENT;  // one only for the driver
        const cl_int code = next().clSetUserEventStatus(event, status);
        if (code == CL_SUCCESS && status < 0) look_for_failures();
        return code;
    };
    table.clFinish = [](cl_command_queue queue) -> cl_int { return finish(queue); };
    table.clGetExtensionFunctionAddress = [](const char* name) -> void* {
        return extension(name, next().clGetExtensionFunctionAddress(name));
    };
    table.clGetExtensionFunctionAddressForPlatform = [](cl_platform_id platform, const char* name) -> void* {
        return extension(name, next().clGetExtensionFunctionAddressForPlatform(platform, name));
    };
}

}  // namespace heddle::opencl
