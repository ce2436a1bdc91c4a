#include "opencl/kernel_arguments.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace heddle::opencl {
namespace {

/// Those that were set, by their places: buffers and the like, samplers, and null for the others.
using Arguments = std::map<cl_uint, void*>;

/// Never destroyed: other threads may use kernels while the process ends. What is left of a kernel goes when
/// another one has its handle.
struct KernelRegistry {
    mutable std::mutex mutex;
    std::unordered_set<void*> living;             // of cl_mem
    std::unordered_map<void*, cl_uint> samplers;  // with the program's references: no driver tells their end
    std::unordered_map<cl_kernel, Arguments> arguments;

    // With the mutex.
    [[nodiscard]] bool knows(void* object) const {
        return living.contains(object) || samplers.contains(object);
    }
    /// Null: it has gone.
    [[nodiscard]] std::shared_ptr<void> kept_object(void* object) const {
        if (living.contains(object)) return kept(static_cast<cl_mem>(object));
        auto* const sampler = static_cast<cl_sampler>(object);
        if (!samplers.contains(object) || next().clRetainSampler(sampler) != CL_SUCCESS) return {};
        return {sampler, [](cl_sampler one) { next().clReleaseSampler(one); }};
    }
};
KernelRegistry& kernel_registry() {
    static auto* const all = new KernelRegistry;
    return *all;
}

void gone(cl_mem object, void*) {
    const std::lock_guard guard(kernel_registry().mutex);
    kernel_registry().living.erase(object);
}

void enter(cl_mem object) {
    if (next().clSetMemObjectDestructorCallback(object, gone, nullptr) != CL_SUCCESS) return;
    const std::lock_guard guard(kernel_registry().mutex);
    kernel_registry().living.insert(object);
}

void enter(cl_sampler sampler) {
    const std::lock_guard guard(kernel_registry().mutex);
    kernel_registry().samplers[sampler] = 1;
}

/// A function of the table that makes a buffer, an image, a pipe or a sampler.
template <class Function>
struct Making;
template <class Object, class... Args>
struct Making<Object(CL_API_CALL*)(Args...)> {
    template <auto Member>
    static Object CL_API_CALL call(Args... args) {
        Object object = (next().*Member)(args...);
        try {
            if (object != nullptr) enter(object);
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
    const std::lock_guard guard(kernel_registry().mutex);
    for (cl_kernel kernel : made) kernel_registry().arguments.erase(kernel);
}

void inherit(cl_kernel clone, cl_kernel from) {
    KernelRegistry& all = kernel_registry();
    const std::lock_guard guard(all.mutex);
    const auto found = all.arguments.find(from);
    if (found == all.arguments.end()) return;
    Arguments same = found->second;
    all.arguments[clone] = std::move(same);
}

void note(cl_kernel kernel, cl_uint index, void* value) {
    KernelRegistry& all = kernel_registry();
    const std::lock_guard guard(all.mutex);
    all.arguments[kernel][index] = all.knows(value) ? value : nullptr;
}

cl_int set_argument(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
    const cl_int code = next().clSetKernelArg(kernel, index, bytes, value);
    if (code != CL_SUCCESS) return code;
    void* object = nullptr;
    if (value != nullptr && bytes == sizeof object) std::memcpy(&object, value, sizeof object);
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

cl_int retain_sampler(cl_sampler sampler) {
    const cl_int code = next().clRetainSampler(sampler);
    if (code != CL_SUCCESS) return code;
    const std::lock_guard guard(kernel_registry().mutex);
    if (const auto found = kernel_registry().samplers.find(sampler);
        found != kernel_registry().samplers.end())
        ++found->second;
    return code;
}

cl_int release_sampler(cl_sampler sampler) {
    {
        const std::lock_guard guard(kernel_registry().mutex);
        const auto found = kernel_registry().samplers.find(sampler);
        if (found != kernel_registry().samplers.end() && --found->second == 0)
            kernel_registry().samplers.erase(found);
    }
    return next().clReleaseSampler(sampler);
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
    note_what_it_makes<&T::clCreateSampler>(table);
    note_what_it_makes<&T::clCreateSamplerWithProperties>(table);
    table.clRetainSampler = retain_sampler;
    table.clReleaseSampler = release_sampler;
    table.clSetKernelArg = set_argument;
    table.clSetKernelArgSVMPointer = set_shared_argument;
}

size_t count_of_set_arguments(cl_kernel kernel) {
    const KernelRegistry& known = kernel_registry();
    const std::lock_guard guard(known.mutex);
    const auto found = known.arguments.find(kernel);
    return found == known.arguments.end() ? 0 : found->second.size();
}

std::vector<std::shared_ptr<void>> kept_arguments(cl_kernel kernel) {
    std::vector<std::shared_ptr<void>> all;
    const KernelRegistry& known = kernel_registry();
    const std::lock_guard guard(known.mutex);
    if (const auto found = known.arguments.find(kernel); found != known.arguments.end())
        for (const auto& [index, object] : found->second)
            if (auto one = known.kept_object(object)) all.push_back(std::move(one));
    return all;
}

}  // namespace heddle::opencl
