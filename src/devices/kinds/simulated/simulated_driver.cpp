#include "devices/kinds/simulated/simulated_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

namespace heddle::devices {
namespace {

struct VirtualClock {
    std::mutex mutex;
    double now_us = 0;
};

class SimulatedCopy final : public DriverCopy {
  public:
    SimulatedCopy(std::shared_ptr<VirtualClock> clock, double ends_at_us)
        : clock_(std::move(clock)), ends_at_us_(ends_at_us) {}
    [[nodiscard]] bool has_ended() override {
        const std::lock_guard guard(clock_->mutex);
        return clock_->now_us >= ends_at_us_;
    }
    /// The bytes are there already; the clock is its worker's.
    [[nodiscard]] bool finish() override { return true; }

  private:
    const std::shared_ptr<VirtualClock> clock_;
    const double ends_at_us_;
};

struct SimulatedMemory final : DriverMemory {
    std::vector<std::byte> own;
    std::byte* bytes = nullptr;
};

struct SimulatedProgram final : DriverProgram {
    std::map<std::string, HostKernel> functions;
    [[nodiscard]] std::vector<std::string> kernels() const override {
        std::vector<std::string> names;
        for (const auto& [name, function] : functions) names.push_back(name);
        return names;
    }
    [[nodiscard]] const std::string& log() const override {
        static const std::string none;
        return none;
    }
};

class SimulatedDriver final : public DeviceDriver {
  public:
    SimulatedDriver(SimulatedDevice device, std::shared_ptr<VirtualClock> clock)
        : device_(std::move(device)), clock_(std::move(clock)) {
        info_.name = device_.name;
        info_.kind = "simulated";
        info_.available = true;
        info_.platform = "heddle";
        info_.type = device_.type;
        info_.units = 1;
        info_.shares_host_memory = device_.shares_host_memory;
        info_.has_images = device_.has_images;
        info_.memory_bytes = device_.memory_bytes;
    }

    [[nodiscard]] const DeviceInfo& info() const override { return info_; }

    [[nodiscard]] std::shared_ptr<DriverProgram> build(const ProgramSource& source) override {
        if (source.host.empty()) return nullptr;
        auto program = std::make_shared<SimulatedProgram>();
        program->functions = source.host;
        return program;
    }

    [[nodiscard]] std::unique_ptr<DriverMemory> allocate(size_t bytes, void* host) override {
        auto memory = std::make_unique<SimulatedMemory>();
        if (!device_.shares_host_memory) memory->own.resize(bytes);
        memory->bytes = device_.shares_host_memory ? static_cast<std::byte*>(host) : memory->own.data();
        return memory;
    }

    [[nodiscard]] std::string image_problem(const ImageShape&) const override {
        return device_.has_images ? "" : "it has no images";
    }

    [[nodiscard]] std::unique_ptr<DriverMemory> allocate_image(const ImageShape& shape) override {
        if (!device_.has_images) return DeviceDriver::allocate_image(shape);
        auto memory = std::make_unique<SimulatedMemory>();
        memory->own.resize(shape.bytes());
        memory->bytes = memory->own.data();
        return memory;
    }

    [[nodiscard]] std::unique_ptr<DriverCopy> write(DriverMemory& memory, size_t offset, size_t bytes,
                                                    const void* from) override {
        count_write();
        std::memcpy(static_cast<SimulatedMemory&>(memory).bytes + offset, from, bytes);
        const std::lock_guard guard(clock_->mutex);
        written_at_us_ = use(copies_free_us_, copy_us(bytes));
        return std::make_unique<SimulatedCopy>(clock_, written_at_us_);
    }

    [[nodiscard]] bool copies_from(const DeviceDriver& source) const override {
        const auto* const other = dynamic_cast<const SimulatedDriver*>(&source);
        return other != nullptr && device_.peer_access && other->device_.peer_access &&
               clock_ == other->clock_;
    }

    /// Each of the two copies nothing else meanwhile; the slower one says how long.
    [[nodiscard]] std::unique_ptr<DriverCopy> copy(DriverMemory& to, size_t offset, size_t bytes,
                                                   const DeviceDriver& source,
                                                   const DriverMemory& from) override {
        count_write();
        std::memcpy(static_cast<SimulatedMemory&>(to).bytes + offset,
                    static_cast<const SimulatedMemory&>(from).bytes + offset, bytes);
        const auto& other = static_cast<const SimulatedDriver&>(source);
        const std::lock_guard guard(clock_->mutex);
        copies_free_us_ = std::max(copies_free_us_, other.copies_free_us_);
        written_at_us_ = use(copies_free_us_, std::max(copy_us(bytes), other.copy_us(bytes)));
        other.copies_free_us_ = written_at_us_;
        return std::make_unique<SimulatedCopy>(clock_, written_at_us_);
    }

    void read(DriverMemory& memory, size_t offset, size_t bytes, void* to) override {
        std::memcpy(to, static_cast<SimulatedMemory&>(memory).bytes + offset, bytes);
        const std::lock_guard guard(clock_->mutex);
        use(copies_free_us_, copy_us(bytes));
    }

    void launch(DriverProgram& program, const std::string& kernel, std::span<const DriverArgument> arguments,
                const LaunchShape& shape) override {
        ++launches_;
        if (device_.fails_at_launch != 0 && launches_ >= device_.fails_at_launch)
            throw DeviceError(
                ErrorCode::kSystem, info_.name, true,
                fmt::format("{} failed at launch {}, as it was told to", info_.name, launches_));
        std::vector<std::vector<std::byte>> local;
        local.reserve(arguments.size());
        std::vector<void*> pointers;
        for (const DriverArgument& argument : arguments) {
            if (argument.memory != nullptr)
                pointers.push_back(static_cast<SimulatedMemory*>(argument.memory)->bytes);
            else if (argument.value != nullptr)
                pointers.push_back(const_cast<void*>(argument.value));
            else
                pointers.push_back(local.emplace_back(argument.bytes).data());
        }
        static_cast<SimulatedProgram&>(program).functions.at(kernel)(HostArguments(std::move(pointers)),
                                                                     shape);
        constexpr double kUsPerItem = 1e-3;
        const double us = device_.cost_us ? device_.cost_us(kernel, shape)
                                          : kUsPerItem * static_cast<double>(shape.work.count());
        const std::lock_guard guard(clock_->mutex);
        computes_free_us_ = std::max(computes_free_us_, written_at_us_);
        use(computes_free_us_, us);
    }

    [[nodiscard]] Mark mark() override {
        const std::lock_guard guard(clock_->mutex);
        marks_[++last_mark_] = std::max(computes_free_us_, written_at_us_);
        return last_mark_;
    }

    void wait(Mark mark) override {
        const std::lock_guard guard(clock_->mutex);
        const auto found = marks_.find(mark);
        clock_->now_us = std::max(clock_->now_us, found->second);
        marks_.erase(found);
    }

    [[nodiscard]] double now_us() const override {
        const std::lock_guard guard(clock_->mutex);
        return clock_->now_us;
    }

    [[nodiscard]] const void* clock() const override { return clock_.get(); }

    [[nodiscard]] double passes_at_us(Mark mark) const override {
        const std::lock_guard guard(clock_->mutex);
        const auto found = marks_.find(mark);
        return found == marks_.end() ? clock_->now_us : found->second;
    }

    [[nodiscard]] bool looks_ahead() const override { return false; }
    [[nodiscard]] bool compiles_at_first_launch() const override { return false; }
    [[nodiscard]] double copy_us(size_t bytes) const override {
        return device_.us_per_byte * static_cast<double>(bytes);
    }

  private:
    /// Throws DeviceError.
    void count_write() {
        ++writes_;
        if (device_.fails_at_copy != 0 && writes_ >= device_.fails_at_copy)
            throw DeviceError(ErrorCode::kSystem, info_.name, true,
                              fmt::format("{} failed at copy {}, as it was told to", info_.name, writes_));
    }
    /// With the clock's lock: one of its two engines is busy for so long, after what it does already. Until
    /// when.
    double use(double& free_us, double us) const {
        free_us = std::max(free_us, clock_->now_us) + us;
        return free_us;
    }

    const SimulatedDevice device_;
    const std::shared_ptr<VirtualClock> clock_;
    DeviceInfo info_;
    unsigned launches_ = 0, writes_ = 0;
    // With the clock's lock: it computes and copies at the same time.
    double computes_free_us_ = 0;
    mutable double copies_free_us_ = 0;  // a copy to another device takes its time, too
    double written_at_us_ = 0;           // the last write has ended
    Mark last_mark_ = 0;
    std::map<Mark, double> marks_;
};

}  // namespace

std::vector<std::shared_ptr<DeviceDriver>> simulated_drivers(const std::vector<SimulatedDevice>& devices) {
    const auto clock = std::make_shared<VirtualClock>();
    std::vector<std::shared_ptr<DeviceDriver>> drivers;
    for (const SimulatedDevice& device : devices)
        drivers.push_back(std::make_shared<SimulatedDriver>(device, clock));
    return drivers;
}

}  // namespace heddle::devices
