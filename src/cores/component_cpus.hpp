// ComponentCpus: a pool as a component of its process: it lends its CPUs while it has no work, wins them back
// when it has, and borrows what others lend (heddle/cores.hpp).
//
// The component is attached while the pool runs. A pool that has no work at all has lent everything and waits
// for nothing. Thread-safe as CpuProvider says; the exchange must outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "cores/cpu_provider.hpp"
#include "cores/exchange.hpp"
#include "heddle/cores.hpp"

namespace heddle {

class ComponentCpus final : public CpuProvider {
  public:
    /// A pool on `owned`, which may be empty: it then runs on what others lend, and of that on `among` alone
    /// where that is not empty.
    /// `work` is asked what the pool has done, as Component::on_count says.
    ComponentCpus(Exchange& exchange, std::string name, CpuSet owned, CpuSet among = {},
                  std::function<WorkCounts()> work = {});

    /// Attaches. Throws as Component's constructor.
    void start(std::function<void()> changed) override;
    void stop() override;
    [[nodiscard]] CpuSet usable() const override;
    void set_demand(int cpus) override;
    void returned(const CpuSet& cpus) override;
    [[nodiscard]] CpuSet to_return() const override { return component_->to_return(); }
    [[nodiscard]] CpuSet awaited() const override { return component_->awaited(); }
    [[nodiscard]] bool tells_awaited() const override { return true; }
    void give_back(const CpuSet& cpus) override;
    [[nodiscard]] bool shares() const override { return true; }

    /// Others than `among` are not usable any more from now on, and `among` are: not none, and beyond what it
    /// owns. Any thread, while the pool runs.
    void confine(const CpuSet& among);

  private:
    void ask();
    void ask_once();
    [[nodiscard]] CpuSet among() const;

    Exchange& exchange_;
    std::string name_;
    const CpuSet owned_;
    const std::function<WorkCounts()> work_;
    mutable std::mutex mutex_;  // for among_, and held in no call of another's
    CpuSet among_;
    std::function<void()> changed_;
    std::optional<Component> component_;
    std::atomic<int> demand_{0};  // written in the pool's calls alone, which come one at a time
    std::atomic<int> asking_{0};  // calls of ask() since one began that has not ended
};

}  // namespace heddle
