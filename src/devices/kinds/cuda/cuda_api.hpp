// CUDA's driver interface and NVRTC as far as heddle needs them, loaded when they are first asked for: no
// header and no library of CUDA is needed to build heddle, and none is linked. Types and values are those of
// CUDA's documented ABI (CUDA Driver API and NVRTC reference, versions 11 to 13).
#pragma once

#include <cstddef>
#include <string>

namespace heddle::devices::cuda {

using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;
struct ContextObject;
struct StreamObject;
struct EventObject;
struct ModuleObject;
struct FunctionObject;
using Context = ContextObject*;
using Stream = StreamObject*;
using Event = EventObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;

constexpr Result kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600;
constexpr int kMultiprocessors = 16, kComputeMajor = 75, kComputeMinor = 76;  // device attributes
constexpr unsigned kStreamNonBlocking = 1, kEventBlocks = 1, kEventNoTiming = 2;

/// libcuda.so.1, which comes with NVIDIA's driver.
struct Driver {
    /// Why there is none, and what to do; "" where it is there, initialised, and has a device.
    std::string problem;

    Result (*init)(unsigned) = nullptr;
    Result (*version)(int*) = nullptr;
    Result (*device_count)(int*) = nullptr;
    Result (*device)(DeviceNumber*, int) = nullptr;
    Result (*device_name)(char*, int, DeviceNumber) = nullptr;
    Result (*device_memory)(size_t*, DeviceNumber) = nullptr;
    Result (*device_attribute)(int*, int, DeviceNumber) = nullptr;
    Result (*retain_context)(Context*, DeviceNumber) = nullptr;
    Result (*release_context)(DeviceNumber) = nullptr;
    Result (*push_context)(Context) = nullptr;
    Result (*pop_context)(Context*) = nullptr;
    Result (*make_stream)(Stream*, unsigned) = nullptr;
    Result (*free_stream)(Stream) = nullptr;
    Result (*finish_stream)(Stream) = nullptr;
    Result (*allocate)(Address*, size_t) = nullptr;
    Result (*free)(Address) = nullptr;
    Result (*copy_in)(Address, const void*, size_t, Stream) = nullptr;
    Result (*copy_out)(void*, Address, size_t, Stream) = nullptr;
    Result (*copy_across)(Address, Context, Address, Context, size_t, Stream) = nullptr;
    Result (*load_module)(Module*, const void*) = nullptr;
    Result (*unload_module)(Module) = nullptr;
    Result (*function)(Function*, Module, const char*) = nullptr;
    Result (*global)(Address*, size_t*, Module, const char*) = nullptr;
    Result (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,
                     void**, void**) = nullptr;
    Result (*make_event)(Event*, unsigned) = nullptr;
    Result (*record_event)(Event, Stream) = nullptr;
    Result (*wait_event)(Event) = nullptr;
    Result (*query_event)(Event) = nullptr;
    Result (*stream_waits)(Stream, Event, unsigned) = nullptr;
    Result (*free_event)(Event) = nullptr;
    Result (*error_name)(Result, const char**) = nullptr;
};

using CompilerProgram = void*;

/// libnvrtc, the compiler, which comes with CUDA's toolkit.
struct Compiler {
    std::string problem;

    Result (*version)(int*, int*) = nullptr;
    Result (*create)(CompilerProgram*, const char*, const char*, int, const char* const*,
                     const char* const*) = nullptr;
    Result (*compile)(CompilerProgram, int, const char* const*) = nullptr;
    Result (*log_size)(CompilerProgram, size_t*) = nullptr;
    Result (*log)(CompilerProgram, char*) = nullptr;
    Result (*ptx_size)(CompilerProgram, size_t*) = nullptr;
    Result (*ptx)(CompilerProgram, char*) = nullptr;
    Result (*destroy)(CompilerProgram*) = nullptr;
    const char* (*error_text)(Result) = nullptr;
};

/// Looked for once. Any thread.
[[nodiscard]] const Driver& driver();
[[nodiscard]] const Compiler& compiler();

/// After such an error of a kernel's or of the device's a context takes no more commands; any other refuses
/// one call.
[[nodiscard]] bool stays(Result result);
/// Throws DeviceError where the result is none of success: the device is lost where it stays.
void check(Result result, const std::string& device, const char* call);

}  // namespace heddle::devices::cuda
