#include "devices/kinds/host/host_driver.hpp"

#include <fmt/format.h>

#include <cctype>
#include <chrono>
#include <deque>

#include "heddle/error.hpp"

namespace heddle::devices {
namespace {

thread_local std::shared_ptr<HostTurn> next_turn;

struct HostMemory final : DriverMemory {};

bool has_word(const std::string& text, const std::string& word) {
    const auto in_word = [&](size_t at) {
        return at < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
    };
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        if (!(at > 0 && in_word(at - 1)) && !in_word(at + word.size())) return true;
    return false;
}

/// Its kernels are those of the sources, whatever compiles there: no compiler is needed for a task's own
/// function, and none tells their names.
struct HostProgram final : DriverProgram {
    std::vector<std::string> names;
    std::string opencl, cuda;
    [[nodiscard]] std::vector<std::string> kernels() const override { return names; }
    [[nodiscard]] bool may_have(const std::string& kernel) const override {
        return has_word(opencl, kernel) || has_word(cuda, kernel);
    }
    [[nodiscard]] const std::string& log() const override {
        static const std::string none;
        return none;
    }
};

class HostDriver final : public DeviceDriver {
  public:
    HostDriver() {
        info_.name = "host";
        info_.kind = "host";
        info_.available = true;
        info_.platform = "heddle";
        info_.units = 1;
        info_.shares_host_memory = true;
    }

    [[nodiscard]] const DeviceInfo& info() const override { return info_; }

    [[nodiscard]] std::shared_ptr<DriverProgram> build(const ProgramSource& source) override {
        if (source.opencl.empty() && source.cuda.empty() && source.host.empty()) return nullptr;
        auto program = std::make_shared<HostProgram>();
        for (const auto& [name, function] : source.host) program->names.push_back(name);
        program->opencl = source.opencl;
        program->cuda = source.cuda;
        return program;
    }

    [[nodiscard]] std::unique_ptr<DriverMemory> allocate(size_t, void*) override {
        return std::make_unique<HostMemory>();
    }
    std::unique_ptr<DriverCopy> write(DriverMemory&, size_t, size_t, const void*) override { return nullptr; }
    void read(DriverMemory&, size_t, size_t, void*) override {}

    void launch(DriverProgram&, const std::string& kernel, std::span<const DriverArgument>,
                const LaunchShape&) override {
        if (next_turn == nullptr)
            throw Error(
                ErrorCode::kInvalidArgument,
                fmt::format("kernel \"{}\" has no function for the CPU: insert it by TaskDevices", kernel));
        last_ = std::exchange(next_turn, nullptr);
        last_->begin();
    }

    [[nodiscard]] Mark mark() override {
        turns_.push_back(std::exchange(last_, nullptr));
        return first_mark_ + turns_.size() - 1;
    }
    void wait(Mark) override {
        if (turns_.front() != nullptr) turns_.front()->wait();
        turns_.pop_front();
        ++first_mark_;
    }

    [[nodiscard]] double now_us() const override {
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }
    [[nodiscard]] bool compiles_at_first_launch() const override { return false; }
    [[nodiscard]] bool looks_ahead() const override { return false; }
    [[nodiscard]] double copy_us(size_t) const override { return 0; }

  private:
    DeviceInfo info_;
    // The worker's.
    std::shared_ptr<HostTurn> last_;
    std::deque<std::shared_ptr<HostTurn>> turns_;  // of the marks not waited for; null where nothing ran
    Mark first_mark_ = 1;
};

}  // namespace

void HostTurn::end() {
    {
        const std::lock_guard guard(mutex_);
        over_ = true;
    }
    ended_.notify_all();
}

void HostTurn::wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return over_; });
}

void set_next_turn(std::shared_ptr<HostTurn> turn) {
    next_turn = std::move(turn);
}

std::vector<std::shared_ptr<DeviceDriver>> host_drivers(unsigned count) {
    std::vector<std::shared_ptr<DeviceDriver>> drivers;
    for (unsigned i = 0; i < count; ++i) drivers.push_back(std::make_shared<HostDriver>());
    return drivers;
}

}  // namespace heddle::devices
