#include "opencl/kernel_arguments.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace heddle::opencl {
namespace {

using Arguments = std::map<cl_uint, cl_mem>;  // by their places

/// Never destroyed: other threads may use kernels while the process ends. What is left of a kernel goes when
/// another one has its handle.
struct Registry {
    std::mutex mutex;
    std::unordered_set<cl_mem> living;
    std::unordered_map<cl_kernel, Arguments> arguments;
};
Registry& registry() {
    static auto* const all = new Registry;
    return *all;
}

void gone(cl_mem object, void*) {
    const std::lock_guard guard(registry().mutex);
    registry().living.erase(object);
}

/// A function of the table that makes a buffer, an image or a pipe.
template <class Function>
struct Making;
template <class... Args>
struct Making<cl_mem(CL_API_CALL*)(Args...)> {
    template <auto Member>
    static cl_mem CL_API_CALL call(Args... args) {
        cl_mem object = (next().*Member)(args...);
        if (object == nullptr || next().clSetMemObjectDestructorCallback(object, gone, nullptr) != CL_SUCCESS)
            return object;
        try {
            const std::lock_guard guard(registry().mutex);
            registry().living.insert(object);
        } catch (const std::bad_alloc&) {
            // It is not kept then.
        }
        return object;
    }
};

template <auto Member>
void note_what_it_makes(cl_icd_dispatch& table) {
    table.*Member = Making<std::remove_reference_t<decltype(table.*Member)>>::template call<Member>;
}

void created(std::span<const cl_kernel> made) {
    const std::lock_guard guard(registry().mutex);
    for (cl_kernel kernel : made) registry().arguments.erase(kernel);
}

void inherit(cl_kernel clone, cl_kernel from) {
    Registry& all = registry();
    const std::lock_guard guard(all.mutex);
    const auto found = all.arguments.find(from);
    if (found == all.arguments.end()) return;
    Arguments same = found->second;
    all.arguments[clone] = std::move(same);
}

/// Null: none that has to be kept.
void note(cl_kernel kernel, cl_uint index, cl_mem object) {
    Registry& all = registry();
    const std::lock_guard guard(all.mutex);
    if (all.living.contains(object))
        all.arguments[kernel][index] = object;
    else if (const auto found = all.arguments.find(kernel); found != all.arguments.end())
        found->second.erase(index);
}

cl_int set_argument(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
    const cl_int code = next().clSetKernelArg(kernel, index, bytes, value);
    if (code != CL_SUCCESS) return code;
    cl_mem object = nullptr;
    if (value != nullptr && bytes == sizeof object)
        std::memcpy(static_cast<void*>(&object), value, sizeof object);
    try {
        note(kernel, index, object);
    } catch (const std::bad_alloc&) {
        return CL_OUT_OF_HOST_MEMORY;
    }
    return code;
}

cl_int set_shared_argument(cl_kernel kernel, cl_uint index, const void* value) {
    const cl_int code = next().clSetKernelArgSVMPointer(kernel, index, value);
    if (code == CL_SUCCESS) note(kernel, index, nullptr);
    return code;
}

}  // namespace

void intercept_kernels(cl_icd_dispatch& table) {
    table.clCreateKernel = [](cl_program program, const char* name, cl_int* code) -> cl_kernel {
        cl_kernel kernel = next().clCreateKernel(program, name, code);
        if (kernel != nullptr) created({&kernel, 1});
        return kernel;
    };
    table.clCreateKernelsInProgram = [](cl_program program, cl_uint room, cl_kernel* made,
                                        cl_uint* count) -> cl_int {
        cl_uint number = 0;
        const cl_int code = next().clCreateKernelsInProgram(program, room, made, &number);
        if (code == CL_SUCCESS && made != nullptr) created({made, number});
        if (code == CL_SUCCESS && count != nullptr) *count = number;
        return code;
    };
    table.clCloneKernel = [](cl_kernel kernel, cl_int* code) -> cl_kernel {
        cl_kernel clone = next().clCloneKernel(kernel, code);
        if (clone == nullptr) return clone;
        created({&clone, 1});
        try {
            inherit(clone, kernel);
            return clone;
        } catch (const std::bad_alloc&) {
            next().clReleaseKernel(clone);
            if (code != nullptr) *code = CL_OUT_OF_HOST_MEMORY;
            return nullptr;
        }
    };
    using T = cl_icd_dispatch;
    note_what_it_makes<&T::clCreateBuffer>(table);
    note_what_it_makes<&T::clCreateBufferWithProperties>(table);
    note_what_it_makes<&T::clCreateSubBuffer>(table);
    note_what_it_makes<&T::clCreateImage>(table);
    note_what_it_makes<&T::clCreateImageWithProperties>(table);
    note_what_it_makes<&T::clCreateImage2D>(table);
    note_what_it_makes<&T::clCreateImage3D>(table);
    note_what_it_makes<&T::clCreatePipe>(table);
    table.clSetKernelArg = set_argument;
    table.clSetKernelArgSVMPointer = set_shared_argument;
}

std::vector<KeptMemory> memory_arguments(cl_kernel kernel) {
    std::vector<KeptMemory> all;
    const std::lock_guard guard(registry().mutex);
    if (const auto found = registry().arguments.find(kernel); found != registry().arguments.end())
        for (const auto& [index, object] : found->second)
            if (registry().living.contains(object)) all.push_back(kept(object));
    return all;
}

}  // namespace heddle::opencl
