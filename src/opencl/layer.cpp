// The layer as the ICD loader sees it, and the functions that are called directly.
//
// The loader reads OPENCL_LAYERS at the first call of OpenCL. Who is linked with the layer has it without
// setting that: the library names itself there when it is loaded, and puts back what was there when the
// loader has found it, so that no other program inherits its name, nor a list that the loader has cut at a
// ':'.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <utility>

#include "heddle/compat/CL/cl_heddle.h"
#include "heddle/export.hpp"
#include "opencl/attached.hpp"
#include "opencl/enqueue.hpp"
#include "opencl/kernel_arguments.hpp"
#include "opencl/native_kernel.hpp"
#include "opencl/thread_pool.hpp"

namespace heddle::opencl {
namespace {

cl_icd_dispatch below{}, ours{};
constexpr const char* kVariable = "OPENCL_LAYERS";
bool is_loaded = false;
std::string& value_before() {
    static auto& text = *new std::string;
    return text;
}

std::string real_path(const std::string& given) {
    char* const path = ::realpath(given.c_str(), nullptr);
    if (path == nullptr) return "";
    std::string text = path;
    std::free(path);
    return text;
}

std::string own_path() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<void*>(&own_path), &info) == 0 || info.dli_fname == nullptr) return "";
    return real_path(info.dli_fname);
}

[[gnu::constructor]] void name_itself() {
    const char* const before = std::getenv(kVariable);
    value_before() = before == nullptr ? "" : before;
    is_loaded = true;
    const std::string own = own_path();
    if (own.empty()) return;
    std::istringstream list(value_before());
    std::string others;
    for (std::string one; std::getline(list, one, ':');) {
        if (one.empty()) continue;
        // By a name alone, the loader finds it where it looks for libraries. It has it in hand where it loads
        // the library itself.
        const bool is_layer = one.substr(one.rfind('/') + 1).starts_with("libheddle_cl.so");
        if (is_layer && (one.find('/') == std::string::npos || real_path(one) == own)) return;
        // Another copy of the layer, or none: this one is what the program calls.
        if (!is_layer) others += ":" + one;
    }
    ::setenv(kVariable, (own + others).c_str(), 1);
}

void put_variable_back() {
    if (!std::exchange(is_loaded, false)) return;
    if (value_before().empty())
        ::unsetenv(kVariable);
    else
        ::setenv(kVariable, value_before().c_str(), 1);
}

/// A machine that nobody can tell (HEDDLE_TOPOLOGY) costs the program the layer, not its OpenCL.
bool machine_is_known() {
    try {
        (void)process_cpus();
        return true;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "heddle: OpenCL goes on without heddle's layer: %s\n", error.what());
        return false;
    }
}

}  // namespace

const cl_icd_dispatch& next() noexcept {
    return below;
}

}  // namespace heddle::opencl

using namespace heddle::opencl;

extern "C" HEDDLE_API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void* to,
                                                        size_t* bytes_ret) {
    constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
    constexpr char kName[] = "heddle";
    if (what == CL_LAYER_API_VERSION) return answer(&kVersion, sizeof kVersion, room, to, bytes_ret);
    if (what == CL_LAYER_NAME) return answer(kName, sizeof kName, room, to, bytes_ret);
    return CL_INVALID_VALUE;
}

extern "C" HEDDLE_API cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target,
                                                     cl_uint* entries_ret, const cl_icd_dispatch** layer) {
    constexpr cl_uint kEntries = sizeof(cl_icd_dispatch) / sizeof(void*);
    if (target == nullptr || entries_ret == nullptr || layer == nullptr || entries < kEntries)
        return CL_INVALID_VALUE;
    put_variable_back();
    if (!machine_is_known()) return CL_INVALID_OPERATION;
    below = *target;
    ours = below;
    intercept_commands(ours);
    intercept_kernels(ours);
    intercept_queries(ours);
    intercept_contexts_and_queues(ours);
    *entries_ret = kEntries;
    *layer = &ours;
    return CL_SUCCESS;
}

extern "C" HEDDLE_API cl_int clEnqueueNativeKernelWithType(cl_command_queue queue,
                                                           void(CL_CALLBACK* function)(void*), void* args,
                                                           size_t bytes, cl_uint objects,
                                                           const cl_mem* memory, const void** places,
                                                           cl_native_kernel_type type, cl_uint waits,
                                                           const cl_event* events, cl_event* event) {
    if (below.clGetCommandQueueInfo == nullptr) return CL_INVALID_OPERATION;  // the loader has not taken us
    try {
        return enqueue_native(queue, {function, args, bytes, {memory, objects}, places, type},
                              {events, waits}, event);
    } catch (const std::bad_alloc&) {
        return CL_OUT_OF_HOST_MEMORY;
    } catch (const std::exception&) {
        return CL_OUT_OF_RESOURCES;
    }
}

extern "C" HEDDLE_API cl_int clSetNativeKernelStatusHEDDLE(const void* args, cl_int status) {
    return set_native_status(args, status);
}
