// Where code that runs in a task or kernel, or in what an engine's thread calls of others, could run outside
// of it: allowance() is asked there, too, and what is made there is not to be confined to the CPU of the
// thread that makes it.
#pragma once

#include <functional>

#include "cores/cpu_provider.hpp"

namespace heddle {

/// allowance() knows from now on. To be called before the first task or kernel; any thread, any number of
/// times.
void know_outer_affinity() noexcept;

/// While it lives, what the calling thread calls may run where `outer` says, which outlives it, wherever the
/// thread is bound. Changes nothing in a task, which may go on in another thread, and is known as one.
class CalledOutside {
  public:
    explicit CalledOutside(const CpuSet& outer) noexcept;
    ~CalledOutside();
    CalledOutside(const CalledOutside&) = delete;
    CalledOutside& operator=(const CalledOutside&) = delete;

  private:
    const bool sets_;
    const CpuSet* before_ = nullptr;
};

/// The CPUs of an engine: its calls run what others have asked to be called back for, in threads that the
/// engine has bound.
class OutsideCpus final : public CpuProvider {
  public:
    /// Both outlive it. `outer`: where the engine's threads could run, were they not bound.
    OutsideCpus(CpuProvider& cpus, const CpuSet& outer) : cpus_(cpus), outer_(outer) {}

    void start(std::function<void()> changed) override;
    void stop() override;
    [[nodiscard]] CpuSet usable() const override { return cpus_.usable(); }
    void set_demand(int cpus) override;
    void returned(const CpuSet& cpus) override;
    [[nodiscard]] CpuSet to_return() const override { return cpus_.to_return(); }
    [[nodiscard]] CpuSet awaited() const override { return cpus_.awaited(); }
    [[nodiscard]] bool tells_awaited() const override { return cpus_.tells_awaited(); }
    void give_back(const CpuSet& cpus) override;
    [[nodiscard]] bool shares() const override { return cpus_.shares(); }

  private:
    CpuProvider& cpus_;
    const CpuSet& outer_;
};

}  // namespace heddle
