// Kind cuda: every device of NVIDIA's driver. The device's primary context for each, a stream for kernels and
// one for copies.
#include <fmt/format.h>

#include <chrono>
#include <deque>

#include "devices/kinds/cuda/cuda_program.hpp"

namespace heddle::devices::cuda {
namespace {

std::string name_of(DeviceNumber device) {
    char name[256] = "";
    driver().device_name(name, sizeof name, device);
    return name;
}

std::string version_text() {
    int version = 0;
    driver().version(&version);
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

class CudaCopy final : public DriverCopy {
  public:
    explicit CudaCopy(std::shared_ptr<Session> session) : session_(std::move(session)) {}
    ~CudaCopy() override {
        const Entered entered(*session_, std::nothrow);
        if (entered.in() && event_ != nullptr) driver().free_event(event_);
    }
    /// What the stream was given so far; within the context. Throws DeviceError.
    void record(Stream stream) {
        check(driver().make_event(&event_, kEventBlocks | kEventNoTiming), session_->name, "cuEventCreate");
        check(driver().record_event(event_, stream), session_->name, "cuEventRecord");
    }
    [[nodiscard]] Event event() const { return event_; }
    [[nodiscard]] bool has_ended() override {
        const Entered entered(*session_, std::nothrow);
        return !entered.in() || driver().query_event(event_) != kNotReady;
    }
    [[nodiscard]] bool finish() override {
        const Entered entered(*session_, std::nothrow);
        return entered.in() && driver().wait_event(event_) == kSuccess;
    }

  private:
    const std::shared_ptr<Session> session_;
    Event event_ = nullptr;
};

class CudaDriver final : public DeviceDriver {
  public:
    explicit CudaDriver(DeviceNumber device) : session_(std::make_shared<Session>(device, name_of(device))) {
        info_.name = session_->name;
        info_.kind = "cuda";
        info_.available = true;
        info_.version = version_text();
        info_.platform = "NVIDIA CUDA";
        info_.type = DeviceType::kGpu;
        int units = 0;
        driver().device_attribute(&units, kMultiprocessors, device);
        info_.units = static_cast<unsigned>(units);
        size_t bytes = 0;
        driver().device_memory(&bytes, device);
        info_.memory_bytes = bytes;
        const Entered entered(*session_);
        check(driver().make_stream(&stream_, kStreamNonBlocking), info_.name, "cuStreamCreate");
        if (const Result made = driver().make_stream(&copies_, kStreamNonBlocking); made != kSuccess) {
            driver().free_stream(stream_);
            check(made, info_.name, "cuStreamCreate");
        }
    }

    ~CudaDriver() override {
        const Entered entered(*session_, std::nothrow);
        if (!entered.in()) return;
        driver().finish_stream(copies_);
        driver().finish_stream(stream_);
        for (Event event : marks_) driver().free_event(event);
        for (Event event : idle_) driver().free_event(event);
        driver().free_stream(copies_);
        driver().free_stream(stream_);
    }

    [[nodiscard]] const DeviceInfo& info() const override { return info_; }

    [[nodiscard]] std::shared_ptr<DriverProgram> build(const ProgramSource& source) override {
        if (source.cuda.empty()) return nullptr;
        return std::make_shared<CudaProgram>(session_, source);
    }

    [[nodiscard]] std::unique_ptr<DriverMemory> allocate(size_t bytes, void*) override {
        auto memory = std::make_unique<CudaMemory>();
        memory->session = session_;
        const Entered entered(*session_);
        check(driver().allocate(&memory->address, bytes), info_.name, "cuMemAlloc");
        return memory;
    }

    /// Kernels that are launched from now on wait for it.
    [[nodiscard]] std::unique_ptr<DriverCopy> write(DriverMemory& memory, size_t offset, size_t bytes,
                                                    const void* from) override {
        const Entered entered(*session_);
        check(driver().copy_in(static_cast<CudaMemory&>(memory).address + offset, from, bytes, copies_),
              info_.name, "cuMemcpyHtoDAsync");
        return latest_copy();
    }

    /// CUDA finds the way: from card to card where the machine can do that.
    [[nodiscard]] bool copies_from(const DeviceDriver& source) const override {
        return dynamic_cast<const CudaDriver*>(&source) != nullptr;
    }

    [[nodiscard]] std::unique_ptr<DriverCopy> copy(DriverMemory& to, size_t offset, size_t bytes,
                                                   const DeviceDriver& /*source*/,
                                                   const DriverMemory& from) override {
        const auto& there = static_cast<const CudaMemory&>(from);
        const Entered entered(*session_);
        check(driver().copy_across(static_cast<CudaMemory&>(to).address + offset, session_->context,
                                   there.address + offset, there.session->context, bytes, copies_),
              info_.name, "cuMemcpyPeerAsync");
        return latest_copy();
    }

    void read(DriverMemory& memory, size_t offset, size_t bytes, void* to) override {
        const Entered entered(*session_);
        check(driver().copy_out(to, static_cast<CudaMemory&>(memory).address + offset, bytes, copies_),
              info_.name, "cuMemcpyDtoHAsync");
        check(driver().finish_stream(copies_), info_.name, "cuStreamSynchronize");
    }

    void launch(DriverProgram& program, const std::string& kernel, std::span<const DriverArgument> arguments,
                const LaunchShape& shape) override {
        const Entered entered(*session_);
        static_cast<CudaProgram&>(program).launch(kernel, arguments, shape, stream_);
    }

    [[nodiscard]] Mark mark() override {
        const Entered entered(*session_);
        Event event = nullptr;
        if (idle_.empty()) {
            check(driver().make_event(&event, kEventBlocks | kEventNoTiming), info_.name, "cuEventCreate");
        } else {
            event = idle_.back();
            idle_.pop_back();
        }
        if (const Result recorded = driver().record_event(event, stream_); recorded != kSuccess) {
            idle_.push_back(event);
            check(recorded, info_.name, "cuEventRecord");
        }
        marks_.push_back(event);
        return first_mark_ + marks_.size() - 1;
    }

    void sleep_until_passed(Mark mark) override {
        const Entered entered(*session_);
        // What went wrong wait() tells.
        if (driver().wait_event(marks_[mark - first_mark_]) == kSuccess) passed_ = mark;
    }

    void wait(Mark mark) override {
        Event event = marks_.front();
        marks_.pop_front();
        ++first_mark_;
        idle_.push_back(event);
        if (mark <= passed_) return;
        const Entered entered(*session_);
        check(driver().wait_event(event), info_.name, "a kernel");
    }

    [[nodiscard]] double now_us() const override {
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }

    [[nodiscard]] double copy_us(size_t bytes) const override {
        // Of PCIe 3.0 with 16 lanes, as nobody has measured it yet.
        constexpr double kStartUs = 10, kUsPerByte = 8e-5;
        return kStartUs + kUsPerByte * static_cast<double>(bytes);
    }

  private:
    /// What was given to the stream of copies last; within the context.
    [[nodiscard]] std::unique_ptr<DriverCopy> latest_copy() {
        try {
            auto copy = std::make_unique<CudaCopy>(session_);
            copy->record(copies_);
            check(driver().stream_waits(stream_, copy->event(), 0), info_.name, "cuStreamWaitEvent");
            return copy;
        } catch (...) {
            driver().finish_stream(copies_);  // nobody else would know of the copy
            throw;
        }
    }

    std::shared_ptr<Session> session_;
    DeviceInfo info_;
    Stream stream_ = nullptr, copies_ = nullptr;
    // The worker's.
    std::deque<Event> marks_;  // those not waited for
    Mark first_mark_ = 1;      // the first of them
    Mark passed_ = 0;          // up to this one they are known to have
    std::vector<Event> idle_;
};

std::string problem() {
    if (!driver().problem.empty()) return driver().problem;
    return compiler().problem;
}

std::vector<std::shared_ptr<DeviceDriver>> open(std::vector<DeviceInfo>& unusable, unsigned /*units*/) {
    int count = 0;
    driver().device_count(&count);
    std::vector<std::shared_ptr<DeviceDriver>> drivers;
    for (int i = 0; i < count; ++i) {
        DeviceNumber device = 0;
        if (driver().device(&device, i) != kSuccess) continue;
        try {
            drivers.push_back(std::make_shared<CudaDriver>(device));
        } catch (const DeviceError& error) {
            DeviceInfo& info = unusable.emplace_back();
            info.name = name_of(device);
            info.kind = "cuda";
            info.reason = error.what();
        }
    }
    return drivers;
}

std::string refusal(const ProgramSource& source) {
    if (!compiler().problem.empty()) throw Error(ErrorCode::kUnavailable, compiler().problem);
    const Compiled compiled = compile(source, "");
    if (!compiled.ptx.empty()) return "";
    return compiled.log.empty() ? compiled.problem : compiled.log;
}

}  // namespace
}  // namespace heddle::devices::cuda

extern "C" HEDDLE_API const heddle::devices::DeviceKind* heddle_device_kind() {
    static const heddle::devices::DeviceKind kind{heddle::devices::kDeviceInterface, "cuda",
                                                  heddle::devices::cuda::problem, heddle::devices::cuda::open,
                                                  heddle::devices::cuda::refusal};
    return &kind;
}
