// Kind opencl: every device of every driver that the ICD loader finds.
#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "devices/kinds/opencl/opencl_driver.hpp"
#include "devices/kinds/opencl/opencl_foreign.hpp"

namespace heddle::devices::opencl {
namespace {

std::vector<cl_platform_id> platforms() {
    // A driver that begins changes them.
    static const bool kept = (keep_variables(), true);
    (void)kept;
    cl_uint count = 0;
    if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
    std::vector<cl_platform_id> all(count);
    clGetPlatformIDs(count, all.data(), nullptr);
    return all;
}

/// Devices of so many compute units that a CPU is divided into, or itself. They are the process's for good:
/// PoCL 3.1 looks at one after its last release. open_devices() comes here one at a time.
template <class Note>
std::vector<cl_device_id> parts_of(cl_device_id whole, unsigned units, const Note& note) {
    static auto& known = *new std::map<std::pair<cl_device_id, unsigned>, std::vector<cl_device_id>>;
    const auto all = device_value<cl_uint>(whole, CL_DEVICE_MAX_COMPUTE_UNITS);
    if (units == 0 || units >= all ||
        type_of(device_value<cl_device_type>(whole, CL_DEVICE_TYPE)) != DeviceType::kCpu)
        return {whole};
    std::vector<cl_device_id>& parts = known[{whole, units}];
    if (!parts.empty()) return parts;
    const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_EQUALLY, units, 0};
    parts.resize(all / units);
    cl_uint count = 0;
    const cl_int code =
        clCreateSubDevices(whole, how, static_cast<cl_uint>(parts.size()), parts.data(), &count);
    parts.resize(code == CL_SUCCESS ? count : 0);
    if (!parts.empty()) return parts;
    note(fmt::format("{} is one device: it cannot be divided into devices of {} of its {} compute units ({})",
                     device_text(whole, CL_DEVICE_NAME), units, all, code_name(code)));
    return {whole};
}

std::string problem() {
    if (!platforms().empty()) return "";
    return "no OpenCL driver is installed: apt-get install pocl-opencl-icd, or the driver of a device's "
           "maker";
}

std::vector<std::shared_ptr<DeviceDriver>> open(std::vector<DeviceInfo>& unusable, unsigned units) {
    std::vector<std::shared_ptr<DeviceDriver>> drivers;
    for (cl_platform_id platform : platforms()) {
        cl_uint count = 0;
        if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
        std::vector<cl_device_id> devices(count);
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
        for (cl_device_id whole : devices) {
            if (device_value<cl_bool>(whole, CL_DEVICE_AVAILABLE) != CL_TRUE) continue;
            const auto note = [&](std::string why) {
                DeviceInfo& info = unusable.emplace_back();
                info.name = device_text(whole, CL_DEVICE_NAME);
                info.kind = "opencl";
                info.reason = std::move(why);
            };
            for (cl_device_id device : parts_of(whole, units, note)) try {
                    drivers.push_back(make_driver(platform, device));
                } catch (const DeviceError& error) {
                    note(error.what());
                }
        }
    }
    return drivers;
}

}  // namespace
}  // namespace heddle::devices::opencl

extern "C" HEDDLE_API const heddle::devices::DeviceKind* heddle_device_kind() {
    static const heddle::devices::DeviceKind kind{
        heddle::devices::kDeviceInterface, "opencl", heddle::devices::opencl::problem,
        heddle::devices::opencl::open,     nullptr,  heddle::devices::opencl::build_on,
        heddle::devices::opencl::run_on};
    return &kind;
}
