#include "devices/task_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "devices/buffer_state.hpp"
#include "devices/device_state.hpp"

namespace heddle::devices {

std::mutex& graph_mutex() {
    static std::mutex mutex;
    return mutex;
}

std::vector<unsigned> ProgramState::lacking(const std::string& kernel) const {
    if (const auto found = kernels.find(kernel); found != kernels.end()) return found->second;
    std::vector<unsigned> devices;
    for (unsigned i = 0; i < built.size(); ++i)
        if (built[i] != nullptr && !built[i]->may_have(kernel)) devices.push_back(i);
    return devices;
}

TaskState::TaskState(std::shared_ptr<Program> of_program, Score scored, std::string named)
    : program(std::move(of_program)), score(scored), name(std::move(named)) {
    if (program == nullptr) throw Error(ErrorCode::kInvalidArgument, "a device task needs a program");
}

Kernel& TaskState::add_kernel(const std::string& kernel_name) {
    const ProgramState& built = of(*program);
    const std::vector<unsigned> lacking = built.lacking(kernel_name);
    const auto count =
        std::count_if(built.built.begin(), built.built.end(), [](const auto& one) { return one != nullptr; });
    if (lacking.size() == static_cast<size_t>(count)) {
        std::vector<std::string> names;
        for (const auto& known : built.kernels) names.push_back(known.first);
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the program has no kernel \"{}\": it has {}", kernel_name,
                                names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
    }
    lacking_on_.insert(lacking_on_.end(), lacking.begin(), lacking.end());
    return kernels.emplace_back(kernel_name);
}

Kernel& TaskState::kernel(const std::string& kernel_name) {
    for (Kernel& kernel : kernels)
        if (kernel.name() == kernel_name) return kernel;
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the task has no kernel \"{}\"", kernel_name));
}

std::string TaskState::refusal(const DeviceState& device) const {
    const ProgramState& built = of(*program);
    if (device.driver->dead) return "it failed";
    if (only_device >= 0 && only_device != static_cast<int>(device.index))
        return "the task is for another one";
    if (built.built[device.index] == nullptr)
        return built.logs[device.index].empty() ? "the program has no source for it"
                                                : "the program was not built: " + built.logs[device.index];
    for (const Kernel& kernel : kernels) {
        const std::vector<unsigned> lacking = built.lacking(kernel.name());
        if (std::find(lacking.begin(), lacking.end(), device.index) != lacking.end())
            return fmt::format("its program has no kernel \"{}\"", kernel.name());
    }
    return image_refusal(device);
}

std::string TaskState::image_refusal(const DeviceState& device) const {
    std::string why;
    visit_accesses([&](const Access& access) {
        const BufferState& buffer = BufferState::of(*access.buffer);
        if (buffer.image() == nullptr || !why.empty()) return;
        const std::string problem = device.driver->image_problem(*buffer.image());
        if (!problem.empty())
            why = fmt::format("buffer \"{}\" is an image of {}, and {}", buffer.name(),
                              buffer.image()->text(), problem);
    });
    return why;
}

bool TaskState::runs_on(const DeviceState& device) const {
    return !device.driver->dead && suits(device);
}

bool TaskState::suits(const DeviceState& device) const {
    return (only_device < 0 || only_device == static_cast<int>(device.index)) &&
           of(*program).built[device.index] != nullptr &&
           std::find(lacking_on_.begin(), lacking_on_.end(), device.index) == lacking_on_.end() &&
           (status != TaskStatus::kBuilt || image_refusal(device).empty());
}

std::string TaskState::shown_name() const {
    if (!name.empty()) return name;
    const std::lock_guard guard(kernels_mutex_);
    std::string names;
    for (const Kernel& kernel : kernels)
        names += fmt::format("{}{}", names.empty() ? "" : "+", kernel.name());
    return names;
}

std::exception_ptr TaskState::named(const std::exception_ptr& why) const {
    try {
        std::rethrow_exception(why);
    } catch (const SourceError&) {
        return why;
    } catch (const BuildError&) {
        return why;
    } catch (const DeviceError& told_by_driver) {
        const std::string shown = shown_name();
        if (std::string_view(told_by_driver.what()).find(shown) != std::string_view::npos) return why;
        return std::make_exception_ptr(
            DeviceError(told_by_driver.code(), told_by_driver.device(), told_by_driver.lost(),
                        fmt::format("task \"{}\": {}", shown, told_by_driver.what())));
    } catch (...) {
        return why;
    }
}

void TaskState::sign(std::span<const std::unique_ptr<DeviceState>> devices) {
    for (const auto& device : devices)
        if (!image_refusal(*device).empty()) lacking_on_.push_back(device->index);
    const auto may_be = [&](const auto& device) { return runs_on(*device); };
    if (const auto sole = std::ranges::find_if(devices, may_be);
        sole != devices.end() && std::none_of(std::next(sole), devices.end(), may_be))
        sole_device = static_cast<int>((*sole)->index);
    signature_ = of(*program).hash;
    for (const Kernel& kernel : kernels) {
        mix(signature_, std::hash<std::string>()(kernel.name()));
        mix(signature_, kernel.shape_.work.count());
    }
}

double TaskState::estimate_us(const DeviceState& device) const {
    const auto unbounded_us = [&] {
        if (device.costs != nullptr)
            if (const std::optional<double> measured = device.costs->estimate_us(signature_))
                return *measured;
        switch (device.driver->info().type) {
            case DeviceType::kCpu:
                return score.cpu;
            case DeviceType::kGpu:
                return score.gpu;
            case DeviceType::kAccelerator:
                return score.accelerator;
        }
        return score.cpu;
    };
    // Schedulers divide costs and compare their sums.
    constexpr double kLeastUs = 1e-3, kMostUs = 1e15;
    const double us = unbounded_us();
    return us >= kLeastUs ? std::min(us, kMostUs) : kLeastUs;
}

namespace {

/// The parts of the range that none of these writes.
std::vector<ByteRange> unwritten(const TaskState::Writes& writes, const Buffer* buffer, ByteRange range) {
    std::vector<ByteRange> parts{range}, rest;
    for (const auto& [written, before] : writes) {
        if (written != buffer) continue;
        const size_t first = before.offset, end = first + before.size;
        rest.clear();
        for (const ByteRange& part : parts) {
            const size_t part_end = part.offset + part.size;
            if (part.offset < first) rest.push_back({part.offset, std::min(first, part_end) - part.offset});
            if (end < part_end) {
                const size_t from = std::max(end, part.offset);
                rest.push_back({from, part_end - from});
            }
        }
        parts.swap(rest);
    }
    return parts;
}

}  // namespace

double TaskState::transfer_us(const DeviceState& device, const Writes& coming) const {
    double us = 0;
    const std::lock_guard guard(kernels_mutex_);
    visit_accesses([&](const Access& access) {
        if (access.mode == AccessMode::kOut) return;
        for (const ByteRange& part : unwritten(coming, access.buffer.get(), access.range))
            us += BufferState::of(*access.buffer).fetch_us(*device.driver, part);
    });
    return us;
}

size_t TaskState::bytes_read_of(const TaskState& writer) const {
    size_t bytes = 0;
    const std::lock_guard guard(kernels_mutex_);
    visit_accesses([&](const Access& read) {
        if (read.mode == AccessMode::kOut) return;
        for (const auto& [buffer, written] : writer.writes_) {
            if (buffer != read.buffer.get()) continue;
            const size_t first = std::max(read.range.offset, written.offset);
            const size_t end = std::min(read.range.offset + read.range.size, written.offset + written.size);
            if (first < end) bytes += end - first;
        }
    });
    return bytes;
}

void TaskState::launch_kernel(DeviceState& device, DriverProgram& built, const Kernel& kernel,
                              Writes& written) {
    std::vector<DriverArgument> arguments;
    arguments.reserve(kernel.arguments_.size());
    for (size_t i = 0; i < kernel.arguments_.size(); ++i) {
        const KernelArgument& argument = kernel.arguments_[i];
        if (const auto* const access = std::get_if<Access>(&argument)) {
            BufferState& buffer = BufferState::of(*access->buffer);
            const ByteRange range = buffer.checked_for_kernel(access->range);
            const bool reads = access->mode != AccessMode::kOut;
            has_begun_ |= reads;
            if (reads && !written.empty())
                for (const ByteRange& part : unwritten(written, access->buffer.get(), range))
                    (void)buffer.acquire(device.driver, part, true, false);
            DriverMemory& memory = buffer.acquire(device.driver, range, reads && written.empty(),
                                                  access->mode != AccessMode::kIn);
            arguments.push_back({&memory, nullptr, buffer.size()});
        } else if (const auto* const bytes = std::get_if<std::vector<std::byte>>(&argument)) {
            arguments.push_back({nullptr, bytes->data(), bytes->size()});
        } else if (const auto* const local = std::get_if<LocalMemory>(&argument)) {
            arguments.push_back({nullptr, nullptr, local->bytes});
        } else {
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("argument {} of kernel \"{}\" is not set", i, kernel.name()));
        }
    }
    kernel.check_shape();
    has_begun_ = true;
    device.driver->launch(built, kernel.name(), arguments, kernel.shape_);
    ++launched_;
    if (kernels.size() == 1) return;
    for (const KernelArgument& argument : kernel.arguments_)
        if (const auto* const access = std::get_if<Access>(&argument);
            access != nullptr && access->mode != AccessMode::kIn)
            written.emplace_back(access->buffer.get(), access->range);
}

void TaskState::prefetch(DeviceState& on) {
    const std::lock_guard guard(kernels_mutex_);
    Writes written;
    visit_accesses([&](const Access& access) {
        if (access.mode != AccessMode::kOut)
            for (const ByteRange& part : unwritten(written, access.buffer.get(), access.range)) {
                prefetched_ = true;
                (void)BufferState::of(*access.buffer).acquire(on.driver, part, true, false);
            }
        if (access.mode != AccessMode::kIn) written.emplace_back(access.buffer.get(), access.range);
    });
}

void TaskState::launch(DeviceState& on, Writes coming) {
    if (!suits(on))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the scheduler has given task \"{}\" to {}, which cannot run it",
                                shown_name(), on.driver->info().name));
    launched_ = 0;
    has_begun_ = false;
    if (configure) configure(on.device, *handle);
    Writes& written = coming;
    for (const Kernel& kernel : kernels) launch_kernel(on, *of(*program).built[on.index], kernel, written);
}

void TaskState::publish(DeviceState& on) {
    size_t left = launched_;
    for (const Kernel& kernel : kernels) {
        if (left-- == 0) break;
        for (const KernelArgument& argument : kernel.arguments_)
            if (const auto* const access = std::get_if<Access>(&argument);
                access != nullptr && access->mode != AccessMode::kIn)
                BufferState::of(*access->buffer).written(*on.driver, access->range);
    }
}

bool TaskState::may_run_again(const DeviceState& on) const {
    size_t left = launched_;
    std::vector<Access> changed;
    Writes written, needed;
    for (const Kernel& kernel : kernels) {
        std::vector<Access> writes;
        for (const KernelArgument& argument : kernel.arguments_) {
            const auto* const access = std::get_if<Access>(&argument);
            if (access == nullptr) continue;
            if (access->mode != AccessMode::kOut)
                for (const ByteRange& part : unwritten(written, access->buffer.get(), access->range))
                    needed.emplace_back(access->buffer.get(), part);
            if (access->mode != AccessMode::kIn) writes.push_back(*access);
        }
        for (const Access& write : writes) written.emplace_back(write.buffer.get(), write.range);
        if (left == 0) continue;
        --left;
        std::ranges::copy_if(writes, std::back_inserter(changed), [&](const Access& write) {
            return BufferState::of(*write.buffer).is_in_place_on(on.driver->info());
        });
    }
    return std::ranges::none_of(changed, [&](const Access& change) {
        return std::ranges::any_of(needed, [&](const auto& need) {
            const auto& [buffer, part] = need;
            return buffer == change.buffer.get() && part.offset < change.range.offset + change.range.size &&
                   change.range.offset < part.offset + part.size;
        });
    });
}

void TaskState::forget() {
    std::list<Kernel> forgotten;
    {
        const std::lock_guard guard(kernels_mutex_);
        if (prefetched_)
            visit_accesses(
                [](const Access& access) { BufferState::of(*access.buffer).finish_uploads(access.range); });
        forgotten.swap(kernels);
    }
    configure = nullptr;
    finish = nullptr;
}

}  // namespace heddle::devices
