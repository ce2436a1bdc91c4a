// Kernel: what a task's kernel is given.
#include <fmt/format.h>

#include <algorithm>

#include "devices/buffer_state.hpp"
#include "heddle/device_task.hpp"

namespace heddle::devices {

KernelArgument& Kernel::argument(unsigned index) {
    constexpr unsigned kMost = 1024;
    if (index >= kMost)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("kernel \"{}\" has no argument {}", name_, index));
    constexpr size_t kMostHave = 4;
    if (arguments_.empty()) arguments_.reserve(std::max<size_t>(kMostHave, index + 1));
    if (index >= arguments_.size()) arguments_.resize(index + 1);
    return arguments_[index];
}

Kernel& Kernel::arg(unsigned index, Access access) {
    if (access.buffer == nullptr)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("argument {} of kernel \"{}\" is no buffer", index, name_));
    access.range = BufferState::of(*access.buffer).checked_for_kernel(access.range);
    argument(index) = std::move(access);
    return *this;
}

Kernel& Kernel::arg(unsigned index, LocalMemory local) {
    if (local.bytes == 0)
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("argument {} of kernel \"{}\" is no local memory: it has no bytes", index, name_));
    argument(index) = local;
    return *this;
}

Kernel& Kernel::bytes(unsigned index, const void* value, size_t size) {
    if (value == nullptr || size == 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("argument {} of kernel \"{}\" is no value: {}", index, name_,
                                size == 0 ? "it has no bytes" : "it is at a null pointer"));
    const auto* const first = static_cast<const std::byte*>(value);
    argument(index) = std::vector<std::byte>(first, first + size);
    return *this;
}

Kernel& Kernel::work(size_t x, size_t y, size_t z) {
    shape_.work = {x, y, z};
    return *this;
}

Kernel& Kernel::offset(size_t x, size_t y, size_t z) {
    shape_.offset = {x, y, z};
    return *this;
}

Kernel& Kernel::group(size_t x, size_t y, size_t z) {
    if (x != 0 && (y == 0 || z == 0))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a group of {} x {} x {} items of kernel \"{}\" has none", x, y, z, name_));
    shape_.group = {x, y, z};
    return *this;
}

void Kernel::check_shape() const {
    const Extent &work = shape_.work, &group = shape_.group;
    size_t plane = 0, all = 0;
    if (work.x == 0 || work.y == 0 || work.z == 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("kernel \"{}\" has no work: call Kernel::work()", name_));
    if (__builtin_mul_overflow(work.x, work.y, &plane) || __builtin_mul_overflow(plane, work.z, &all))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{} x {} x {} items of kernel \"{}\" are more than can be counted", work.x,
                                work.y, work.z, name_));
    const auto reaches = [](size_t offset, size_t items) {
        size_t end = 0;
        return !__builtin_add_overflow(offset, items, &end);
    };
    const Extent& offset = shape_.offset;
    if (!reaches(offset.x, work.x) || !reaches(offset.y, work.y) || !reaches(offset.z, work.z))
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("{} x {} x {} items of kernel \"{}\" at {}, {}, {} are beyond what can be counted",
                        work.x, work.y, work.z, name_, offset.x, offset.y, offset.z));
    if (group.x != 0 && (group.y > work.y || group.z > work.z))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{} x {} x {} items of kernel \"{}\" have no groups of {} x {} x {}", work.x,
                                work.y, work.z, name_, group.x, group.y, group.z));
}

}  // namespace heddle::devices
