// FixedCpus: a set of CPUs for a pool that shares with nobody, until its owner sets another one.
//
// Thread-safe. Does not outlive the process.
#pragma once

#include <mutex>

#include "cores/cpu_provider.hpp"

namespace heddle {

class FixedCpus final : public CpuProvider {
  public:
    explicit FixedCpus(CpuSet cpus);

    /// Other CPUs from now on. Workers on CPUs that are gone finish their current item first; returned_cpus()
    /// tells when they have. Not to be called while the pool is being stopped.
    void set(const CpuSet& cpus);
    /// All that the pool has left because they were taken away, and that were not given again.
    [[nodiscard]] CpuSet returned_cpus() const;
    /// What the pool could use, as last told.
    [[nodiscard]] int demand() const;

    void start(std::function<void()> changed) override;
    void stop() override;
    [[nodiscard]] CpuSet usable() const override;
    void set_demand(int cpus) override;
    void returned(const CpuSet& cpus) override;
    void give_back(const CpuSet& cpus) override;
    [[nodiscard]] bool shares() const override { return false; }

  private:
    mutable std::mutex mutex_;  // for all below
    CpuSet cpus_;
    CpuSet returned_;
    int demand_ = 0;
    std::function<void()> changed_;
};

}  // namespace heddle
