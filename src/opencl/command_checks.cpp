#include "opencl/command_checks.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "opencl/kernel_arguments.hpp"

namespace heddle::opencl {
namespace {

template <class Value>
cl_int memory_value(cl_mem object, cl_mem_info what, Value& value) {
    return next().clGetMemObjectInfo(object, what, sizeof value, static_cast<void*>(&value), nullptr);
}

/// A part of a buffer of the queue's context.
cl_int check_part(cl_command_queue queue, cl_mem buffer, size_t offset, size_t size) {
    cl_mem_object_type type = 0;
    size_t bytes = 0;
    if (buffer == nullptr || memory_value(buffer, CL_MEM_TYPE, type) != CL_SUCCESS ||
        type != CL_MEM_OBJECT_BUFFER || memory_value(buffer, CL_MEM_SIZE, bytes) != CL_SUCCESS)
        return CL_INVALID_MEM_OBJECT;
    if (context_of(buffer) != queue_value<cl_context>(queue, CL_QUEUE_CONTEXT)) return CL_INVALID_CONTEXT;
    return offset > bytes || size > bytes - offset ? CL_INVALID_VALUE : CL_SUCCESS;
}

template <class Value>
Value kernel_value(cl_kernel kernel, cl_kernel_info what) {
    Value value{};
    next().clGetKernelInfo(kernel, what, sizeof value, static_cast<void*>(&value), nullptr);
    return value;
}

template <class Value>
Value group_value(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what) {
    Value value{};
    next().clGetKernelWorkGroupInfo(kernel, device, what, sizeof value, &value, nullptr);
    return value;
}

constexpr size_t kMostDimensions = 3;
using Items = std::array<size_t, kMostDimensions>;

/// How many items a group has in each dimension of the device's.
std::vector<size_t> most_items(cl_device_id device) {
    std::vector<size_t> most(device_value<cl_uint>(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS));
    next().clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, most.size() * sizeof(size_t), most.data(),
                           nullptr);
    most.resize(kMostDimensions);
    return most;
}

cl_int check_group(cl_kernel kernel, cl_device_id device, cl_uint dimensions, const size_t* work,
                   const size_t* group) {
    const auto wanted = group_value<Items>(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
    const bool is_wanted = wanted != Items{};
    if (group == nullptr) return is_wanted ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
    const std::vector<size_t> most = most_items(device);
    const bool may_leave_rest =
        device_value<cl_bool>(device, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT) == CL_TRUE;
    size_t items = 1;
    const auto most_together = group_value<size_t>(kernel, device, CL_KERNEL_WORK_GROUP_SIZE);
    for (cl_uint i = 0; i < dimensions; ++i) {
        if (group[i] == 0) return CL_INVALID_WORK_GROUP_SIZE;
        if (group[i] > most[i]) return CL_INVALID_WORK_ITEM_SIZE;
        if (is_wanted && group[i] != wanted[i]) return CL_INVALID_WORK_GROUP_SIZE;
        if (!may_leave_rest && work[i] % group[i] != 0) return CL_INVALID_WORK_GROUP_SIZE;
        if (group[i] > most_together / items) return CL_INVALID_WORK_GROUP_SIZE;
        items *= group[i];
    }
    return CL_SUCCESS;
}

}  // namespace

cl_context context_of(cl_mem object) {
    cl_context context = nullptr;
    return memory_value(object, CL_MEM_CONTEXT, context) == CL_SUCCESS ? context : nullptr;
}

cl_int check_events(std::span<const cl_event> events, cl_context context) {
    for (cl_event event : events) {
        cl_context own = nullptr;
        if (event == nullptr || next().clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof own,
                                                      static_cast<void*>(&own), nullptr) != CL_SUCCESS)
            return CL_INVALID_EVENT_WAIT_LIST;
        if (own != context) return CL_INVALID_CONTEXT;
    }
    return CL_SUCCESS;
}

cl_int check_transfer(cl_command_queue queue, cl_mem buffer, cl_mem_flags closed, size_t offset, size_t size,
                      const void* host) {
    if (const cl_int code = check_part(queue, buffer, offset, size); code != CL_SUCCESS) return code;
    cl_mem_flags flags = 0;
    if (memory_value(buffer, CL_MEM_FLAGS, flags) == CL_SUCCESS &&
        (flags & (closed | CL_MEM_HOST_NO_ACCESS)) != 0)
        return CL_INVALID_OPERATION;
    return host == nullptr ? CL_INVALID_VALUE : CL_SUCCESS;
}

cl_int check_copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                  size_t size) {
    if (const cl_int code = check_part(queue, from, from_offset, size); code != CL_SUCCESS) return code;
    if (const cl_int code = check_part(queue, to, to_offset, size); code != CL_SUCCESS) return code;
    const bool overlaps = from == to && from_offset < to_offset + size && to_offset < from_offset + size;
    return overlaps ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
}

cl_int check_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* work,
                    const size_t* group) {
    cl_context context = nullptr;
    if (kernel == nullptr || next().clGetKernelInfo(kernel, CL_KERNEL_CONTEXT, sizeof context,
                                                    static_cast<void*>(&context), nullptr) != CL_SUCCESS)
        return CL_INVALID_KERNEL;
    if (context != queue_value<cl_context>(queue, CL_QUEUE_CONTEXT)) return CL_INVALID_CONTEXT;
    if (dimensions == 0 || dimensions > kMostDimensions) return CL_INVALID_WORK_DIMENSION;
    if (work == nullptr) return CL_INVALID_GLOBAL_WORK_SIZE;
    const auto device = queue_value<cl_device_id>(queue, CL_QUEUE_DEVICE);
    if (const cl_int code = check_group(kernel, device, dimensions, work, group); code != CL_SUCCESS)
        return code;
    return count_of_set_arguments(kernel) < kernel_value<cl_uint>(kernel, CL_KERNEL_NUM_ARGS)
               ? CL_INVALID_KERNEL_ARGS
               : CL_SUCCESS;
}

}  // namespace heddle::opencl
