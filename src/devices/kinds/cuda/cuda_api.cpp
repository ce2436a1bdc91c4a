#include "devices/kinds/cuda/cuda_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <initializer_list>

#include "heddle/device_types.hpp"

namespace heddle::devices::cuda {
namespace {

/// Looks symbols up, and notes the first that is missing.
class Library {
  public:
    explicit Library(std::initializer_list<const char*> names) {
        for (const char* name : names) {
            handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (handle_ != nullptr) return;
        }
    }
    [[nodiscard]] bool there() const { return handle_ != nullptr; }
    [[nodiscard]] const std::string& missing() const { return missing_; }

    template <class Function>
    void find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(handle_, name));
        if (function == nullptr && missing_.empty()) missing_ = name;
    }

  private:
    void* handle_ = nullptr;  // for good: drivers have threads
    std::string missing_;
};

std::string name_of(const Driver& driver, Result result) {
    const char* name = nullptr;
    if (driver.error_name == nullptr || driver.error_name(result, &name) != kSuccess || name == nullptr)
        return fmt::format("CUDA error {}", result);
    return name;
}

std::string connect(Driver& driver) {
    Library library{"libcuda.so.1"};
    if (!library.there()) return "libcuda.so.1 is not here: install NVIDIA's driver";
    library.find(driver.init, "cuInit");
    library.find(driver.version, "cuDriverGetVersion");
    library.find(driver.device_count, "cuDeviceGetCount");
    library.find(driver.device, "cuDeviceGet");
    library.find(driver.device_name, "cuDeviceGetName");
    library.find(driver.device_memory, "cuDeviceTotalMem_v2");
    library.find(driver.device_attribute, "cuDeviceGetAttribute");
    library.find(driver.retain_context, "cuDevicePrimaryCtxRetain");
    library.find(driver.release_context, "cuDevicePrimaryCtxRelease_v2");
    library.find(driver.push_context, "cuCtxPushCurrent_v2");
    library.find(driver.pop_context, "cuCtxPopCurrent_v2");
    library.find(driver.make_stream, "cuStreamCreate");
    library.find(driver.free_stream, "cuStreamDestroy_v2");
    library.find(driver.finish_stream, "cuStreamSynchronize");
    library.find(driver.allocate, "cuMemAlloc_v2");
    library.find(driver.free, "cuMemFree_v2");
    library.find(driver.copy_in, "cuMemcpyHtoDAsync_v2");
    library.find(driver.copy_out, "cuMemcpyDtoHAsync_v2");
    library.find(driver.copy_across, "cuMemcpyPeerAsync");
    library.find(driver.load_module, "cuModuleLoadData");
    library.find(driver.unload_module, "cuModuleUnload");
    library.find(driver.function, "cuModuleGetFunction");
    library.find(driver.global, "cuModuleGetGlobal_v2");
    library.find(driver.launch, "cuLaunchKernel");
    library.find(driver.make_event, "cuEventCreate");
    library.find(driver.record_event, "cuEventRecord");
    library.find(driver.wait_event, "cuEventSynchronize");
    library.find(driver.query_event, "cuEventQuery");
    library.find(driver.stream_waits, "cuStreamWaitEvent");
    library.find(driver.free_event, "cuEventDestroy_v2");
    library.find(driver.error_name, "cuGetErrorName");
    if (!library.missing().empty())
        return fmt::format("libcuda.so.1 has no {}: install NVIDIA's driver 470 or later", library.missing());
    const Result started = driver.init(0);
    if (started == kNoDevice) return "NVIDIA's driver finds no device";
    if (started != kSuccess)
        return fmt::format("NVIDIA's driver does not start ({}): see whether nvidia-smi does",
                           name_of(driver, started));
    int count = 0;
    if (driver.device_count(&count) != kSuccess || count == 0) return "NVIDIA's driver finds no device";
    return "";
}

std::string connect(Compiler& compiler) {
    Library library{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
    if (!library.there()) return "libnvrtc is not here: install it with CUDA's toolkit (cuda-nvrtc)";
    library.find(compiler.version, "nvrtcVersion");
    library.find(compiler.create, "nvrtcCreateProgram");
    library.find(compiler.compile, "nvrtcCompileProgram");
    library.find(compiler.log_size, "nvrtcGetProgramLogSize");
    library.find(compiler.log, "nvrtcGetProgramLog");
    library.find(compiler.ptx_size, "nvrtcGetPTXSize");
    library.find(compiler.ptx, "nvrtcGetPTX");
    library.find(compiler.destroy, "nvrtcDestroyProgram");
    library.find(compiler.error_text, "nvrtcGetErrorString");
    if (library.missing().empty()) return "";
    return fmt::format("libnvrtc has no {}: install that of CUDA 11.2 or later", library.missing());
}

template <class Interface>
Interface connected() {
    Interface interface;
    interface.problem = connect(interface);
    return interface;
}

}  // namespace

const Driver& driver() {
    static const auto found = connected<Driver>();
    return found;
}

const Compiler& compiler() {
    static const auto found = connected<Compiler>();
    return found;
}

bool stays(Result result) {
    switch (result) {
        case 46:   // device unavailable
        case 101:  // no such device
        case 214:  // uncorrectable error of memory
        case 220:  // uncorrectable error of NVLink
        case 700:  // illegal address
        case 702:  // a kernel took too long
        case 709:  // the context is destroyed
        case 710:  // an assertion
        case 714:  // hardware's stack
        case 715:  // illegal instruction
        case 716:  // misaligned address
        case 717:  // invalid address space
        case 718:  // invalid program counter
        case 719:  // a launch failed
        case 999:  // unknown
            return true;
        default:
            return false;
    }
}

void check(Result result, const std::string& device, const char* call) {
    if (result == kSuccess) return;
    throw DeviceError(result == kOutOfMemory ? ErrorCode::kLimit : ErrorCode::kSystem, device, stays(result),
                      fmt::format("{}: {} answers {}", device, call, name_of(driver(), result)));
}

}  // namespace heddle::devices::cuda
