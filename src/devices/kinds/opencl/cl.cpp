#include "devices/kinds/opencl/cl.hpp"

#include <fmt/format.h>

namespace heddle::devices::opencl {

std::string code_name(cl_int code) {
    switch (code) {
#define HEDDLE_CL_CODE(name) \
    case name:               \
        return #name;
        HEDDLE_CL_CODE(CL_DEVICE_NOT_FOUND)
        HEDDLE_CL_CODE(CL_DEVICE_NOT_AVAILABLE)
        HEDDLE_CL_CODE(CL_COMPILER_NOT_AVAILABLE)
        HEDDLE_CL_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE)
        HEDDLE_CL_CODE(CL_OUT_OF_RESOURCES)
        HEDDLE_CL_CODE(CL_OUT_OF_HOST_MEMORY)
        HEDDLE_CL_CODE(CL_BUILD_PROGRAM_FAILURE)
        HEDDLE_CL_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        HEDDLE_CL_CODE(CL_INVALID_VALUE)
        HEDDLE_CL_CODE(CL_INVALID_BUILD_OPTIONS)
        HEDDLE_CL_CODE(CL_INVALID_KERNEL_NAME)
        HEDDLE_CL_CODE(CL_INVALID_ARG_INDEX)
        HEDDLE_CL_CODE(CL_INVALID_ARG_VALUE)
        HEDDLE_CL_CODE(CL_INVALID_ARG_SIZE)
        HEDDLE_CL_CODE(CL_INVALID_KERNEL_ARGS)
        HEDDLE_CL_CODE(CL_INVALID_WORK_DIMENSION)
        HEDDLE_CL_CODE(CL_INVALID_WORK_GROUP_SIZE)
        HEDDLE_CL_CODE(CL_INVALID_WORK_ITEM_SIZE)
        HEDDLE_CL_CODE(CL_INVALID_GLOBAL_OFFSET)
        HEDDLE_CL_CODE(CL_INVALID_GLOBAL_WORK_SIZE)
        HEDDLE_CL_CODE(CL_INVALID_BUFFER_SIZE)
        HEDDLE_CL_CODE(CL_INVALID_OPERATION)
#undef HEDDLE_CL_CODE
        default:
            return fmt::format("OpenCL error {}", code);
    }
}

void check(cl_int code, const std::string& device, const char* call) {
    if (code == CL_SUCCESS) return;
    const bool lost = code == CL_OUT_OF_RESOURCES || code == CL_DEVICE_NOT_AVAILABLE;
    const bool room = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
                      code == CL_INVALID_BUFFER_SIZE;
    throw DeviceError(room ? ErrorCode::kLimit : ErrorCode::kSystem, device, lost,
                      fmt::format("{}: {} answers {}", device, call, code_name(code)));
}

}  // namespace heddle::devices::opencl
