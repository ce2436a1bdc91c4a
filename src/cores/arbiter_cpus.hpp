// ArbiterCpus: a pool on the CPUs that the arbiter lets this process use: it gets more as far as its demand
// asks for them and the other processes leave them, and they get what it has no use for.
//
// The process is a client of the arbiter from start() to stop(). Where there is no arbiter (none listens, or
// HEDDLE_ARBITER=off) the pool has everything that this process may run on. When the arbiter dies, the pool
// keeps what it has, and the next arbiter hears of it. Thread-safe as CpuProvider says.
//
// Each CPU that the process holds is in one of three sets. `usable_` is the pool's. `lent_` nobody uses:
// the pool gave it back and nobody has taken it yet, so it comes back without the arbiter when demand rises.
// `leaving_` was asked back, and the pool is still on it; between two items its worker leaves, and only then
// does the arbiter hear that the CPU is free.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "cores/arbiter_client.hpp"
#include "cores/component_table.hpp"
#include "cores/cpu_provider.hpp"
#include "heddle/machine.hpp"

namespace heddle {

class ArbiterCpus final : public CpuProvider {
  public:
    using Connect = std::function<std::unique_ptr<ArbiterLink>(ArbiterLink::Callbacks)>;

    /// A pool on `machine` as a client of the arbiter that HEDDLE_ARBITER names. `options.demand` is the
    /// pool's business; `options.allowed` is, where empty, what the system lets this process use. `name` is
    /// the pool's, for `heddle status`, which shows no component where it is empty.
    explicit ArbiterCpus(Machine machine, ArbiterClientOptions options = {}, std::string name = {});
    /// With another link to an arbiter, for tests.
    ArbiterCpus(Machine machine, Connect connect, std::string name = {});

    /// Registers. Throws kInvalidArgument for options that make no sense, and kSystem as allowance().
    void start(std::function<void()> changed) override;
    void stop() override;
    [[nodiscard]] CpuSet usable() const override;
    void set_demand(int cpus) override;
    void returned(const CpuSet& cpus) override;
    [[nodiscard]] CpuSet to_return() const override;
    void give_back(const CpuSet& cpus) override;
    [[nodiscard]] bool shares() const override { return true; }

    /// True while an arbiter manages this process; false also between one that died and the next.
    [[nodiscard]] bool managed() const;
    /// Why none does, in words; "" where one does, where none is wanted, or before start().
    [[nodiscard]] std::string problem() const;

  private:
    void gained(const CpuSet& cpus);
    void asked_back(const CpuSet& cpus);
    void release(int cpu);
    void lend(int cpu);
    [[nodiscard]] bool take_back();
    void show();

    Machine machine_;
    Connect connect_;
    std::string name_;
    ComponentTable components_;
    std::function<void()> changed_;  // set before the link is there, cleared after it
    mutable std::mutex mutex_;       // for all below; held while the link is called, never by its callers
    std::unique_ptr<ArbiterLink> link_;
    CpuSet usable_, lent_, leaving_;
    CpuSet shown_;  // of usable_, as show() left it
    int demand_ = 0;
};

}  // namespace heddle
