// What the layer stands on: OpenCL's functions without the layer, which the loader hands to it once, before
// the first call of any of them (clInitLayer). Only read after that.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace heddle::opencl {

[[nodiscard]] const cl_icd_dispatch& next() noexcept;

/// An event that is released with it.
class OwnedEvent {
  public:
    OwnedEvent() = default;
    explicit OwnedEvent(cl_event event) : event_(event) {}
    OwnedEvent(OwnedEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    OwnedEvent& operator=(OwnedEvent&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }
    ~OwnedEvent() {
        if (event_ != nullptr) next().clReleaseEvent(event_);
    }
    [[nodiscard]] cl_event get() const { return event_; }
    [[nodiscard]] cl_event* place() { return &event_; }

  private:
    cl_event event_ = nullptr;
};

/// A program may release what its commands still need. Null where it cannot be kept.
using KeptMemory = std::shared_ptr<std::remove_pointer_t<cl_mem>>;
[[nodiscard]] inline KeptMemory kept(cl_mem object) {
    if (object == nullptr || next().clRetainMemObject(object) != CL_SUCCESS) return {};
    return {object, [](cl_mem one) { next().clReleaseMemObject(one); }};
}

template <class Value>
[[nodiscard]] Value device_value(cl_device_id device, cl_device_info what) {
    Value value{};
    next().clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
    return value;
}

template <class Value>
[[nodiscard]] Value queue_value(cl_command_queue queue, cl_command_queue_info what) {
    Value value{};
    next().clGetCommandQueueInfo(queue, what, sizeof value, &value, nullptr);
    return value;
}

/// Answers a query of OpenCL's with a value of so many bytes.
[[nodiscard]] cl_int answer(const void* value, size_t bytes, size_t room, void* to, size_t* bytes_ret);

}  // namespace heddle::opencl
