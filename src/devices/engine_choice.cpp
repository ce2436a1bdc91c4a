#include "devices/engine_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "devices/data_in_use.hpp"
#include "devices/kept_buffers.hpp"
#include "devices/task_state.hpp"
#include "heddle/error.hpp"
#include "tasks/frame.hpp"
#include "tasks/runtime_state.hpp"
#include "tasks/waiter.hpp"

namespace heddle::devices {
namespace {

/// Builds it where nobody has done so.
ProgramState::Elsewhere& on_device(ProgramState& program, const DeviceKind& opencl,
                                   const EngineDevice& device) {
    const std::lock_guard lock(program.elsewhere_mutex);
    const auto [place, is_new] = program.elsewhere.try_emplace(device.device);
    ProgramState::Elsewhere& built = place->second;
    if (!is_new) return built;
    try {
        std::shared_ptr<DriverProgram> made = opencl.build_on(device, program.source);
        built.kernels = made->kernels();
        built.program = std::move(made);
    } catch (const BuildError& error) {
        built.log = error.log();
    } catch (const std::exception& error) {
        built.log = error.what();
    }
    return built;
}

class Work final : public TwoWayWork {
  public:
    /// Throws Error kUnavailable where neither a device of the engine nor the CPU can run it.
    Work(const DeviceVariant& variant, std::span<const EngineDevice> devices, bool may_use_cpu)
        : variant_(variant), devices_(devices), opencl_(load_device_kind("opencl")) {
        ProgramState& state = TaskState::of(*variant.program);
        name = fmt::format("heddle-{}-{:x}", variant.kernel, state.hash);
        Signature extents = 0;
        for (const Extent& extent : {variant.work, variant.group})
            for (const size_t items : {extent.x, extent.y, extent.z}) mix(extents, items);
        shape = static_cast<uint32_t>(extents ^ (extents >> 32));
        on_cpu = may_use_cpu;
        std::string why;
        for (size_t i = 0; i < devices.size(); ++i) {
            ProgramState::Elsewhere& built = on_device(state, opencl_, devices[i]);
            programs_.push_back(built.program);
            if (built.program == nullptr) {
                why += "\n" + built.log;
                continue;
            }
            if (std::ranges::find(built.kernels, variant.kernel) != built.kernels.end())
                on_devices |= 1u << i;
            else
                why += fmt::format("\nits program has no kernel \"{}\"", variant.kernel);
        }
        if (on_devices == 0 && !on_cpu)
            throw Error(ErrorCode::kUnavailable,
                        fmt::format("no device of the engine can run kernel \"{}\":{}", variant.kernel, why));
    }

    /// The memory of the argument is that of the use with this index.
    void add_memory(size_t use) { arguments_.push_back({use, {}}); }
    void add_value(std::span<const std::byte> value) { arguments_.push_back({0, value}); }

    void run_on(unsigned device, std::span<void* const> memories) noexcept override {
        try {
            std::vector<ForeignArgument> given;
            for (const Argument& argument : arguments_) {
                const bool is_memory = argument.value.data() == nullptr;
                given.push_back(is_memory ? ForeignArgument{.memory = memories[argument.use]}
                                          : ForeignArgument{.value = argument.value.data(),
                                                            .bytes = argument.value.size()});
            }
            opencl_.run_on(devices_[device], *programs_[device], variant_.kernel, given,
                           {.work = variant_.work, .group = variant_.group});
        } catch (...) {
            failure = std::current_exception();
        }
    }

  private:
    struct Argument {
        size_t use;
        std::span<const std::byte> value;
    };
    const DeviceVariant& variant_;
    const std::span<const EngineDevice> devices_;
    const DeviceKind& opencl_;
    std::vector<std::shared_ptr<DriverProgram>> programs_;  // by device
    std::vector<Argument> arguments_;
};

heddle::AccessMode in_tasks(AccessMode how) {
    return how == AccessMode::kIn    ? heddle::AccessMode::kIn
           : how == AccessMode::kOut ? heddle::AccessMode::kOut
                                     : heddle::AccessMode::kInOut;
}

}  // namespace

KnownData::~KnownData() {
    let_all_go();
}

std::shared_ptr<KnownMemory> KnownData::begin(DataState& data, AccessMode how) {
    std::shared_ptr<KnownMemory> memory;
    data.runtime.kept.keep(data, *this, [&] {
        const std::lock_guard lock(mutex_);
        const auto place = known_.find(&data);
        if (place != known_.end()) memory = place->second.memory;
        if (memory == nullptr)
            memory = data.runtime.engine->device_choice()->know(data.address, bytes_without_gap(data));
        Known& known = place == known_.end() ? known_[&data] : place->second;
        known.memory = memory;
        if (how != AccessMode::kIn) ++known.writers;
    });
    return memory;
}

void KnownData::end(DataState& data, AccessMode how, bool failed) noexcept {
    if (how == AccessMode::kIn) return;
    const std::lock_guard lock(mutex_);
    const auto place = known_.find(&data);
    if (place == known_.end()) return;  // it has gone, or is another keeper's
    Known& known = place->second;
    if (known.writers > 0) --known.writers;  // another keeper may have had it meanwhile
    if (failed) known.memory = nullptr;
}

void KnownData::bring_home(DataState& data, heddle::AccessMode how) {
    if (how == heddle::AccessMode::kIn) return;
    const std::lock_guard lock(mutex_);
    const auto place = known_.find(&data);
    if (place != known_.end() && place->second.writers == 0) place->second.memory = nullptr;
}

void KnownData::forget(DataState& data) noexcept {
    const std::lock_guard lock(mutex_);
    known_.erase(&data);
}

DeviceChoice* choice_for(const DeviceVariant& variant, std::span<const VariantArgument> arguments) noexcept {
    DeviceChoice* const choice = current_frame()->runtime->engine->device_choice();
    if (choice == nullptr || TaskState::of(*variant.program).source.opencl.empty()) return nullptr;
    const bool has_empty = std::ranges::any_of(arguments, [](const VariantArgument& argument) {
        return argument.data != nullptr && argument.data->rows * argument.data->columns == 0;
    });
    return has_empty ? nullptr : choice;
}

void run_where_engine_says(DeviceChoice& choice, KnownData& known, const DeviceVariant& variant,
                           std::span<const VariantArgument> arguments, bool may_use_cpu,
                           const std::function<void()>& on_cpu) {
    Work work(variant, choice.devices(), may_use_cpu);
    DataInUse used(known);
    used.begin(arguments);
    for (const VariantArgument& argument : arguments)
        argument.data == nullptr ? work.add_value(argument.value)
                                 : work.add_memory(used.index_of(*argument.data));
    used.for_each([&](const std::shared_ptr<KnownMemory>& memory, AccessMode how) {
        work.uses.push_back({memory, in_tasks(how)});
    });
    used.submitted();
    wait_for_wake([&](Waiter& waiter) noexcept {
        work.waiter = &waiter;
        return choice.submit(work);
    });
    if (work.chose_cpu) {
        std::exception_ptr failure;
        used.has_them();
        try {
            on_cpu();
        } catch (...) {
            failure = std::current_exception();
        }
        wait_for_wake([&](Waiter& waiter) noexcept {
            work.waiter = &waiter;
            choice.done(work);
            return true;
        });
        if (failure != nullptr) std::rethrow_exception(failure);
    }
    if (work.failure != nullptr) std::rethrow_exception(work.failure);
    used.succeeded();
}

}  // namespace heddle::devices
