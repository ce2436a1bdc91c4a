#include "devices/kinds/opencl/opencl_program.hpp"

#include <fmt/format.h>

namespace heddle::devices::opencl {
namespace {

std::string build_log(cl_program program, cl_device_id device) {
    size_t size = 0;
    if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS)
        return "";
    std::string text(size, '\0');
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
    text.resize(text.find_last_not_of(std::string("\0\n ", 3)) + 1);
    return text;
}

std::string parameter_text(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what) {
    size_t size = 0;
    if (clGetKernelArgInfo(kernel, index, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
    std::string text(size, '\0');
    clGetKernelArgInfo(kernel, index, what, size, text.data(), nullptr);
    text.resize(size - 1);
    return text;
}

}  // namespace

OpenClProgram::OpenClProgram(std::shared_ptr<std::remove_pointer_t<cl_context>> context, cl_device_id device,
                             const std::string& device_name, const ProgramSource& source)
    : context_(std::move(context)), device_(device), device_name_(device_name) {
    const char* text = source.opencl.c_str();
    cl_int code = CL_SUCCESS;
    program_.reset(clCreateProgramWithSource(context_.get(), 1, &text, nullptr, &code));
    check(code, device_name, "clCreateProgramWithSource");
    const std::string options = source.options + " -cl-kernel-arg-info";
    code = clBuildProgram(program_.get(), 1, &device, options.c_str(), nullptr, nullptr);
    log_ = build_log(program_.get(), device);
    if (code != CL_SUCCESS)
        throw BuildError(
            device_name, log_,
            fmt::format("{} does not build the program ({}):\n{}", device_name, code_name(code), log_));
    size_t size = 0;
    check(clGetProgramInfo(program_.get(), CL_PROGRAM_KERNEL_NAMES, 0, nullptr, &size), device_name,
          "clGetProgramInfo");
    std::string names(size, '\0');
    check(clGetProgramInfo(program_.get(), CL_PROGRAM_KERNEL_NAMES, size, names.data(), nullptr), device_name,
          "clGetProgramInfo");
    names = names.c_str();
    for (size_t begin = 0; begin < names.size();) {
        const size_t end = std::min(names.find(';', begin), names.size());
        const std::string name = names.substr(begin, end - begin);
        entries_.emplace(name, make(name));
        begin = end + 1;
    }
}

OpenClProgram::Entry OpenClProgram::make(const std::string& name) const {
    cl_int code = CL_SUCCESS;
    Entry entry;
    entry.object.reset(clCreateKernel(program_.get(), name.c_str(), &code));
    check(code, device_name_, "clCreateKernel");
    cl_kernel const kernel = entry.object.get();
    check(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof entry.count, &entry.count, nullptr),
          device_name_, "clGetKernelInfo");
    (void)clGetKernelWorkGroupInfo(kernel, device_, CL_KERNEL_LOCAL_MEM_SIZE, sizeof entry.local_bytes,
                                   &entry.local_bytes, nullptr);
    entry.parameters.resize(entry.count);
    for (cl_uint i = 0; i < entry.count; ++i) {
        cl_kernel_arg_address_qualifier space = 0;
        if (clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, nullptr) !=
            CL_SUCCESS)
            continue;
        Parameter& parameter = entry.parameters[i];
        parameter.is_local = space == CL_KERNEL_ARG_ADDRESS_LOCAL;
        parameter.is_pointer =
            space == CL_KERNEL_ARG_ADDRESS_GLOBAL || space == CL_KERNEL_ARG_ADDRESS_CONSTANT;
        const std::string type = parameter_text(kernel, i, CL_KERNEL_ARG_TYPE_NAME);
        parameter.is_image = type.starts_with("image2d");
        parameter.text = fmt::format("{} {}", type, parameter_text(kernel, i, CL_KERNEL_ARG_NAME));
    }
    return entry;
}

std::vector<std::string> OpenClProgram::kernels() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
}

/// Drivers answer with an end of the process, or with what else stands for a lost device.
void OpenClProgram::check_local_memory(const std::string& name, const Entry& entry,
                                       std::span<const DriverArgument> arguments) const {
    cl_ulong bytes = entry.local_bytes, most = 0;
    bool has_some = false;
    for (const DriverArgument& argument : arguments) {
        if (argument.memory != nullptr || argument.value != nullptr) continue;
        has_some = true;
        bytes = argument.bytes > ~bytes ? ~cl_ulong{0} : bytes + argument.bytes;
    }
    if (!has_some ||
        clGetDeviceInfo(device_, CL_DEVICE_LOCAL_MEM_SIZE, sizeof most, &most, nullptr) != CL_SUCCESS ||
        bytes <= most)
        return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("kernel \"{}\" needs {} bytes of local memory, and {} has {}", name, bytes,
                            device_name_, most));
}

cl_kernel OpenClProgram::prepared(const std::string& name, std::span<const DriverArgument> arguments) {
    const Entry& entry = entries_.at(name);
    if (arguments.size() != entry.count)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("kernel \"{}\" has {} arguments, and {} were set", name, entry.count,
                                arguments.size()));
    check_local_memory(name, entry, arguments);
    for (cl_uint i = 0; i < entry.count; ++i) {
        const DriverArgument& argument = arguments[i];
        const Parameter& parameter = entry.parameters[i];
        const auto* const memory = static_cast<OpenClMemory*>(argument.memory);
        const bool is_image = memory != nullptr && memory->image;
        const bool fits =
            parameter.text.empty() || (is_image == parameter.is_image &&
                                       (memory != nullptr) == (parameter.is_pointer || parameter.is_image));
        cl_int code = CL_INVALID_ARG_VALUE;
        if (fits && memory != nullptr) {
            cl_mem const object = memory->object.get();
            code = clSetKernelArg(entry.object.get(), i, sizeof object, static_cast<const void*>(&object));
        } else if (fits) {
            code = clSetKernelArg(entry.object.get(), i, argument.bytes, argument.value);
        }
        if (code == CL_SUCCESS) continue;
        const std::string given = is_image            ? "an image"
                                  : memory != nullptr ? "a buffer"
                                  : argument.value != nullptr
                                      ? fmt::format("a value of {} bytes", argument.bytes)
                                      : "local memory";
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("argument {} of kernel \"{}\"{} cannot be {} on {} ({})", i, name,
                        parameter.text.empty() ? "" : fmt::format(", which is \"{}\",", parameter.text),
                        given, device_name_, code_name(code)));
    }
    return entry.object.get();
}

/// For people, with what may be wrong with them.
static std::string group_text(cl_kernel prepared, const size_t (&group)[3]) {
    if (group[0] == 0) return "groups of the device's choice";
    std::string text =
        fmt::format("groups of {} x {} x {}, which have to divide them", group[0], group[1], group[2]);
    size_t most = 0;
    if (clGetKernelWorkGroupInfo(prepared, nullptr, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr) ==
        CL_SUCCESS)
        text += fmt::format(" and have at most {} items here,", most);
    return text;
}

void enqueue(cl_command_queue queue, cl_kernel prepared, const std::string& kernel, const std::string& device,
             const LaunchShape& shape, std::span<const cl_event> after, cl_event* event) {
    const size_t work[] = {shape.work.x, shape.work.y, shape.work.z};
    const size_t offset[] = {shape.offset.x, shape.offset.y, shape.offset.z};
    const size_t group[] = {shape.group.x, shape.group.y, shape.group.z};
    const bool has_offset = shape.offset.x + shape.offset.y + shape.offset.z != 0;
    // A dimension of one item counts where that item is not the first.
    const cl_uint dimensions = shape.work.z + shape.offset.z > 1   ? 3
                               : shape.work.y + shape.offset.y > 1 ? 2
                                                                   : 1;
    const cl_int code =
        clEnqueueNDRangeKernel(queue, prepared, dimensions, has_offset ? offset : nullptr, work,
                               shape.group.x == 0 ? nullptr : group, static_cast<cl_uint>(after.size()),
                               after.empty() ? nullptr : after.data(), event);
    if (code != CL_SUCCESS)
        check(code, device,
              fmt::format("clEnqueueNDRangeKernel of \"{}\" for {} x {} x {} items in {}", kernel, work[0],
                          work[1], work[2], group_text(prepared, group))
                  .c_str());
}

}  // namespace heddle::devices::opencl
