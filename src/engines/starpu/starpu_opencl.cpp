// The OpenCL devices of StarPU, as its own start finds them.
#include "engines/starpu/starpu_opencl.hpp"

#if defined(STARPU_USE_OPENCL) && defined(HEDDLE_HAS_OPENCL)

#include <cstdlib>
#include <cstring>

namespace heddle {
namespace {

bool is_set(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && std::atoi(value) > 0;
}

cl_device_type wanted_types() {
    if (is_set("STARPU_OPENCL_ONLY_ON_CPUS")) return CL_DEVICE_TYPE_CPU;
    cl_device_type types = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR;
    if (is_set("STARPU_OPENCL_ON_CPUS")) types |= CL_DEVICE_TYPE_CPU;
    return types;
}

bool is_starpu_itself(cl_platform_id platform) {
    char name[256] = "";
    return clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, nullptr) == CL_SUCCESS &&
           std::strcmp(name, "SOCL Platform") == 0;
}

}  // namespace

std::vector<starpu_driver> starpu_opencl_drivers() {
    if (const char* const most = std::getenv("STARPU_NOPENCL"); most != nullptr && std::atoi(most) == 0)
        return {};
    std::vector<starpu_driver> drivers;
    cl_uint count = 0;
    if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
    std::vector<cl_platform_id> platforms(count);
    if (count == 0 || clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
    for (cl_platform_id platform : platforms) {
        cl_device_id devices[STARPU_MAXOPENCLDEVS];
        if (is_starpu_itself(platform) ||
            clGetDeviceIDs(platform, wanted_types(), STARPU_MAXOPENCLDEVS, devices, &count) != CL_SUCCESS)
            continue;
        for (cl_uint i = 0; i < count && drivers.size() < STARPU_MAXOPENCLDEVS; ++i) {
            starpu_driver& driver = drivers.emplace_back();
            driver.type = STARPU_OPENCL_WORKER;
            driver.id.opencl_id = devices[i];
        }
    }
    return drivers;
}

EngineDevice starpu_opencl_device(int index) {
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    starpu_opencl_get_context(index, &context);
    starpu_opencl_get_device(index, &device);
    starpu_opencl_get_queue(index, &queue);
    return {context, device, queue};
}

}  // namespace heddle

#else

namespace heddle {
std::vector<starpu_driver> starpu_opencl_drivers() {
    return {};
}
EngineDevice starpu_opencl_device(int) {
    return {};
}
}  // namespace heddle

#endif
