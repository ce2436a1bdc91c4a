#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <mutex>

#include "base/plug_ins.hpp"
#include "devices/driver.hpp"

namespace heddle::devices {
namespace {

struct PlugIn {
    const char* name;
    const char* how;
};
constexpr std::array kPlugIns{
    PlugIn{"opencl",
           "build heddle where ocl-icd-opencl-dev is installed, and install ocl-icd-libopencl1 and a "
           "driver, as pocl-opencl-icd"},
    PlugIn{"cuda", "install heddle whole: it is built everywhere"},
};

Error none_of(const std::string& kind, const std::string& reason) {
    return {ErrorCode::kUnavailable, fmt::format("no devices of kind {}: {}", kind, reason)};
}

}  // namespace

std::string interface_problem(const DeviceKind& kind) {
    if (kind.interface == kDeviceInterface) return "";
    return fmt::format(
        "its plug-in was built with interface {} of heddle's devices, and this library has {}: "
        "install both of one version",
        kind.interface, kDeviceInterface);
}

const DeviceKind& load_device_kind(const std::string& name) {
    for (const PlugIn& plug_in : kPlugIns) {
        if (name != plug_in.name) continue;
        std::string reason;
        const auto get = reinterpret_cast<const DeviceKind* (*)()>(plug_in_function(
            fmt::format("libheddle-device-{}.so", name), "heddle_device_kind", plug_in.how, reason));
        const DeviceKind* const kind = get == nullptr ? nullptr : get();
        if (kind != nullptr) reason = interface_problem(*kind);
        if (!reason.empty()) throw none_of(name, reason);
        return *kind;
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there are no devices of kind \"{}\": heddle knows {}", name,
                            fmt::join(device_kind_names(), ", ")));
}

std::vector<std::shared_ptr<DeviceDriver>> open_devices(const std::string& kind_name,
                                                        std::vector<DeviceInfo>& unusable, unsigned units) {
    // PoCL 3.1 does not stand it to be looked for by several threads for the first time.
    static std::mutex one_at_a_time;
    const std::lock_guard guard(one_at_a_time);
    const DeviceKind& kind = load_device_kind(kind_name);
    if (const std::string reason = kind.problem(); !reason.empty()) throw none_of(kind_name, reason);
    std::vector<std::shared_ptr<DeviceDriver>> found = kind.open(unusable, units);
    if (found.empty() && unusable.empty())
        throw none_of(kind_name,
                      "its drivers are here, and offer no device: they may want a home that can be "
                      "written to, or a variable of theirs says so");
    return found;
}

std::string compiler_refusal(const std::string& kind, const ProgramSource& source) {
    const auto refusal = load_device_kind(kind).refusal;
    if (refusal == nullptr)
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("compilers of kind {} work for a device alone: build the program on one", kind));
    return refusal(source);
}

std::vector<std::string> device_kind_names() {
    std::vector<std::string> names;
    for (const PlugIn& plug_in : kPlugIns) names.emplace_back(plug_in.name);
    return names;
}

const char* to_string(DeviceType type) noexcept {
    switch (type) {
        case DeviceType::kCpu:
            return "cpu";
        case DeviceType::kGpu:
            return "gpu";
        case DeviceType::kAccelerator:
            return "accelerator";
    }
    return "";
}

std::vector<DeviceInfo> list_devices() {
    std::vector<DeviceInfo> all;
    for (const std::string& name : device_kind_names()) {
        try {
            std::vector<DeviceInfo> unusable;
            for (const auto& driver : open_devices(name, unusable)) all.push_back(driver->info());
            all.insert(all.end(), unusable.begin(), unusable.end());
        } catch (const Error& error) {
            DeviceInfo missing;
            missing.name = missing.kind = name;
            missing.reason = error.what();
            all.push_back(missing);
        }
    }
    return all;
}

}  // namespace heddle::devices
