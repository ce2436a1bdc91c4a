#include "devices/kinds/opencl/opencl_foreign.hpp"

#include <deque>

#include "devices/kinds/opencl/opencl_program.hpp"

namespace heddle::devices::opencl {
namespace {

std::string name_of(cl_device_id device) {
    char name[256] = "an OpenCL device";
    (void)clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, nullptr);
    return name;
}

}  // namespace

std::shared_ptr<DriverProgram> build_on(const EngineDevice& device, const ProgramSource& source) {
    auto* const context = static_cast<cl_context>(device.context);
    clRetainContext(context);
    auto* const id = static_cast<cl_device_id>(device.device);
    return std::make_shared<OpenClProgram>(
        std::shared_ptr<std::remove_pointer_t<cl_context>>(context, Releaser()), id, name_of(id), source);
}

void run_on(const EngineDevice& device, DriverProgram& program, const std::string& kernel,
            std::span<const ForeignArgument> arguments, const LaunchShape& shape) {
    const std::string name = name_of(static_cast<cl_device_id>(device.device));
    std::deque<OpenClMemory> memories;
    std::vector<DriverArgument> given;
    for (const ForeignArgument& argument : arguments) {
        if (argument.memory == nullptr) {
            given.push_back({nullptr, argument.value, argument.bytes});
            continue;
        }
        OpenClMemory& memory = memories.emplace_back();
        memory.object.reset(static_cast<cl_mem>(argument.memory));
        clRetainMemObject(memory.object.get());
        given.push_back({&memory, nullptr, 0});
    }
    auto* const queue = static_cast<cl_command_queue>(device.queue);
    enqueue(queue, static_cast<OpenClProgram&>(program).prepared(kernel, given), kernel, name, shape, {},
            nullptr);
    check(clFinish(queue), name, "clFinish");
}

}  // namespace heddle::devices::opencl
