#include "opencl/native_kernel.hpp"

#include <cstddef>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "heddle/error.hpp"
#include "opencl/command_checks.hpp"
#include "opencl/engines.hpp"
#include "opencl/event_ends.hpp"
#include "opencl/held_command.hpp"
#include "opencl/sub_devices.hpp"

namespace heddle::opencl {
namespace {

/// A kernel with its copy of the arguments and its buffers.
struct NativeKernel {
    void(CL_CALLBACK* function)(void*) = nullptr;
    std::vector<std::max_align_t> args;  // as many as there is room needed for the bytes
    bool has_args = false;
    std::vector<cl_mem> memory;
    std::vector<size_t> places;             // in args, of the pointers
    cl_command_queue side_queue = nullptr;  // in which the driver tells where they are
    Offload* offload = nullptr;
    CpuSet cpus;  // none: all of the offload's
    std::shared_ptr<SubDevice> device;
    bool began = false;
    std::atomic<cl_int> status{CL_COMPLETE};  // by the kernel, any of its threads

    NativeKernel() = default;
    NativeKernel(const NativeKernel&) = delete;
    NativeKernel& operator=(const NativeKernel&) = delete;
    ~NativeKernel() {
        for (cl_mem object : memory)
            if (object != nullptr) next().clReleaseMemObject(object);
        if (side_queue != nullptr) next().clReleaseCommandQueue(side_queue);
    }
    [[nodiscard]] char* bytes() { return reinterpret_cast<char*>(args.data()); }
    [[nodiscard]] void* argument() { return has_args ? bytes() : nullptr; }
};

using KernelPointer = std::shared_ptr<NativeKernel>;
using CommandPointer = std::shared_ptr<HeldCommand>;

struct Running {
    std::mutex mutex;
    std::unordered_map<const void*, NativeKernel*> kernels;  // by their arguments
};
Running& running() {
    static auto* const all = new Running;
    return *all;
}

void run(NativeKernel& kernel) {
    const void* const key = kernel.argument();
    if (key != nullptr) {
        const std::lock_guard guard(running().mutex);
        running().kernels.emplace(key, &kernel);
    }
    try {
        kernel.function(kernel.argument());
    } catch (...) {
        kernel.status = CL_NATIVE_KERNEL_FAILED_HEDDLE;
    }
    if (key != nullptr) {
        const std::lock_guard guard(running().mutex);
        running().kernels.erase(key);
    }
}

void end(const KernelPointer& kernel, const CommandPointer& command) {
    if (kernel->began && kernel->device != nullptr) kernel->device->native_ended();
    command->end(kernel->status);
}

void spawn(const KernelPointer& kernel, const CommandPointer& command) {
    kernel->began = true;
    if (kernel->device != nullptr) kernel->device->native_begins();
    try {
        const auto ended = [kernel, command](const std::exception_ptr& why) {
            if (why != nullptr) kernel->status = CL_NATIVE_KERNEL_FAILED_HEDDLE;
            end(kernel, command);
        };
        const auto body = [kernel, command] {
            command->note(CL_PROFILING_COMMAND_START);
            run(*kernel);
            command->note(CL_PROFILING_COMMAND_END);
        };
        if (kernel->cpus.empty())
            (void)kernel->offload->spawn(body, ended);
        else
            (void)kernel->offload->spawn(body, kernel->cpus, ended);
    } catch (const std::exception&) {
        kernel->status = CL_OUT_OF_RESOURCES;
        end(kernel, command);
    }
}

void give(NativeKernel& kernel, size_t object, void* pointer) {
    std::memcpy(kernel.bytes() + kernel.places[object], static_cast<const void*>(&pointer), sizeof pointer);
}

/// A driver tells its own native kernels where a buffer is, however many there are at once; PoCL has no
/// sub-buffers there, and takes one object for another where there are several.
cl_int ask_where(NativeKernel& kernel, size_t i, OwnedEvent& done) {
    struct Place {
        NativeKernel* kernel;
        size_t object;
        size_t offset;
        void* pointer;
    } place{&kernel, i, 0, nullptr};
    cl_mem whole = nullptr;
    next().clGetMemObjectInfo(kernel.memory[i], CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole,
                              static_cast<void*>(&whole), nullptr);
    if (whole != nullptr)
        next().clGetMemObjectInfo(kernel.memory[i], CL_MEM_OFFSET, sizeof place.offset, &place.offset,
                                  nullptr);
    else
        whole = kernel.memory[i];
    const void* const patched = static_cast<const void*>(&place.pointer);
    return next().clEnqueueNativeKernel(
        kernel.side_queue,
        [](void* given) {
            const auto& found = *static_cast<const Place*>(given);
            give(*found.kernel, found.object, static_cast<char*>(found.pointer) + found.offset);
        },
        static_cast<void*>(&place), sizeof place, 1, &whole, const_cast<const void**>(&patched), 0, nullptr,
        done.place());
}

/// In the order of the side queue: when the last one is known, all are.
cl_int ask_for_all(NativeKernel& kernel, OwnedEvent& last) {
    for (size_t i = 0; i < kernel.memory.size(); ++i) {
        give(kernel, i, nullptr);
        if (kernel.memory[i] == nullptr) continue;
        OwnedEvent one;
        if (const cl_int code = ask_where(kernel, i, one); code != CL_SUCCESS) return code;
        last = std::move(one);
    }
    return CL_SUCCESS;
}

void ask_and_spawn(const KernelPointer& kernel, const CommandPointer& command) {
    OwnedEvent last;
    kernel->status = ask_for_all(*kernel, last);
    const auto go_on = [kernel, command](cl_int status) {
        if (status < 0) kernel->status = status;
        if (kernel->status < 0)
            end(kernel, command);
        else
            spawn(kernel, command);
    };
    if (last.get() == nullptr) return go_on(CL_COMPLETE);
    if (!when_over(last.get(), go_on)) {
        (void)new KernelPointer(kernel);  // the driver may still write into its arguments
        go_on(CL_OUT_OF_RESOURCES);
    }
    next().clFlush(kernel->side_queue);
}

/// What the standard refuses.
cl_int check(const NativeCall& call, cl_context context) {
    const size_t objects = call.memory.size();
    if (call.function == nullptr) return CL_INVALID_VALUE;
    if (call.args == nullptr && (call.bytes > 0 || objects > 0)) return CL_INVALID_VALUE;
    if (call.args != nullptr && call.bytes == 0) return CL_INVALID_VALUE;
    if (objects > 0 && (call.memory.data() == nullptr || call.places == nullptr)) return CL_INVALID_VALUE;
    if (objects == 0 && (call.memory.data() != nullptr || call.places != nullptr)) return CL_INVALID_VALUE;
    for (size_t i = 0; i < objects; ++i) {
        const auto* const place = static_cast<const char*>(static_cast<const void*>(call.places[i]));
        const auto* const first = static_cast<const char*>(call.args);
        if (place < first || place + sizeof(void*) > first + call.bytes) return CL_INVALID_VALUE;
        if (call.memory[i] == nullptr) continue;
        cl_mem_object_type type = 0;
        if (next().clGetMemObjectInfo(call.memory[i], CL_MEM_TYPE, sizeof type, &type, nullptr) !=
                CL_SUCCESS ||
            type != CL_MEM_OBJECT_BUFFER)
            return CL_INVALID_MEM_OBJECT;
        if (context_of(call.memory[i]) != context) return CL_INVALID_CONTEXT;
    }
    return CL_SUCCESS;
}

cl_int prepare(NativeKernel& kernel, cl_command_queue queue, cl_device_id device, const NativeCall& call) {
    kernel.function = call.function;
    kernel.has_args = call.args != nullptr;
    kernel.args.resize((call.bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    if (kernel.has_args) std::memcpy(kernel.bytes(), call.args, call.bytes);
    for (size_t i = 0; i < call.memory.size(); ++i) {
        const auto* const place = static_cast<const char*>(static_cast<const void*>(call.places[i]));
        kernel.places.push_back(static_cast<size_t>(place - static_cast<const char*>(call.args)));
        if (call.memory[i] != nullptr) next().clRetainMemObject(call.memory[i]);
        kernel.memory.push_back(call.memory[i]);
    }
    kernel.device = SubDevice::of(device);
    if (kernel.device != nullptr) kernel.cpus = kernel.device->cpus();
    cl_int code = CL_SUCCESS;
    if (!kernel.memory.empty())
        kernel.side_queue =
            next().clCreateCommandQueue(queue_value<cl_context>(queue, CL_QUEUE_CONTEXT), device, 0, &code);
    return code;
}

}  // namespace

cl_int enqueue_native(cl_command_queue queue, const NativeCall& call, std::span<const cl_event> after,
                      cl_event* event) {
    cl_device_id device = nullptr;
    if (queue == nullptr || next().clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device,
                                                         static_cast<void*>(&device), nullptr) != CL_SUCCESS)
        return CL_INVALID_COMMAND_QUEUE;
    const auto context = queue_value<cl_context>(queue, CL_QUEUE_CONTEXT);
    if ((after.data() == nullptr) != after.empty()) return CL_INVALID_EVENT_WAIT_LIST;
    if (const cl_int code = check_events(after, context); code != CL_SUCCESS) return code;
    if (const cl_int code = check(call, context); code != CL_SUCCESS) return code;
    const bool one_type = (call.type & (call.type - 1)) == 0;
    if (!one_type || (call.type & engine_bits()) == 0 ||
        (device_value<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) == 0)
        return CL_INVALID_OPERATION;
    const auto kernel = std::make_shared<NativeKernel>();
    kernel->offload = &offload_for(call.type);
    if (const cl_int code = prepare(*kernel, queue, device, call); code != CL_SUCCESS) return code;
    return HeldCommand::hold(
        queue, CL_COMMAND_NATIVE_KERNEL, after,
        [kernel](const CommandPointer& command) {
            if (kernel->memory.empty())
                spawn(kernel, command);
            else
                ask_and_spawn(kernel, command);
        },
        event);
}

cl_int set_native_status(const void* args, cl_int status) {
    if (status >= 0) return CL_INVALID_VALUE;
    const std::lock_guard guard(running().mutex);
    const auto found = running().kernels.find(args);
    if (found == running().kernels.end()) return CL_INVALID_VALUE;
    found->second->status = status;
    return CL_SUCCESS;
}

}  // namespace heddle::opencl
