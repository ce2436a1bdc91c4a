#include "opencl/engines.hpp"

#include <array>
#include <memory>
#include <mutex>

#include "heddle/compat/CL/cl_heddle.h"
#include "heddle/error.hpp"
#include "heddle/task.hpp"

namespace heddle::opencl {
namespace {

struct Engine {
    cl_native_kernel_type type;
    const char* name;
};
constexpr std::array kEngines{
    Engine{CL_NATIVE_KERNEL_HEDDLE, "native"}, Engine{CL_NATIVE_KERNEL_OPENMP, "openmp"},
    Engine{CL_NATIVE_KERNEL_STARPU, "starpu"}, Engine{CL_NATIVE_KERNEL_TBB, "tbb"},
    Engine{CL_NATIVE_KERNEL_QUARK, "quark"},   Engine{CL_NATIVE_KERNEL_PARSEC, "parsec"},
};

cl_device_exec_capabilities find_engines() {
    cl_device_exec_capabilities bits = 0;
    for (const EngineInfo& info : Runtime::engines())
        for (const Engine& engine : kEngines)
            if (info.available && info.name == engine.name) bits |= engine.type;
    return bits;
}

}  // namespace

cl_device_exec_capabilities engine_bits() {
    static const cl_device_exec_capabilities bits = find_engines();
    return bits;
}

Offload& offload_for(cl_bitfield type) {
    // Never destroyed: kernels may be on their way when the process ends.
    static auto& mutex = *new std::mutex;
    static auto& offloads = *new std::array<std::unique_ptr<Offload>, kEngines.size()>;
    const std::lock_guard guard(mutex);
    for (size_t i = 0; i < kEngines.size(); ++i) {
        if (kEngines[i].type != type) continue;
        if (offloads[i] == nullptr) offloads[i] = std::make_unique<Offload>(kEngines[i].name);
        return *offloads[i];
    }
    throw Error(ErrorCode::kInvalidArgument, "there is no such type of native kernels");
}

}  // namespace heddle::opencl
