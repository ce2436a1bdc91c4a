// Outside: the other processes of the machine, as the ledger of this process sees them: it joins an Exchange
// to the arbiter, so that components lend to each other first, and then to other processes.
//
// The ledger is shared from then on (ledger.hpp): a CPU that the arbiter lets this process use is here, any
// other is away. CPUs that are granted come back to their owners, to who waits for them, or lie idle for the
// taker; those that are asked back are taken away, with the ordinary callbacks, and the arbiter hears that
// they are free once their guests have returned or lent them. What the components use and wait for, all
// together, is the demand that the arbiter sees. Idle CPUs stay here while no other process waits; then they
// are lent, and come back when a component asks for them and nobody took them. Which component uses which CPU
// is shown to the arbiter as well, for `heddle status`.
//
// Belongs to whoever made it; the Exchange outlives it, and no call of the Exchange is under way while it is
// made or destroyed. Thread-safe: the link's thread and those that call components use it at once. It calls
// the Exchange without a lock of its own, as components' callbacks may run in there; the link it calls under
// its mutex. Where no arbiter manages the process, nothing changes: the Exchange is not shared.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "cores/arbiter_client.hpp"
#include "cores/component_table.hpp"
#include "cores/exchange.hpp"

namespace heddle {

class Outside final : public ExchangeWatcher {
  public:
    using Connect = std::function<std::unique_ptr<ArbiterLink>(ArbiterLink::Callbacks)>;

    /// Registers the process with the arbiter that HEDDLE_ARBITER names. `options.demand` is what components
    /// make of it. Throws kInvalidArgument for options that make no sense.
    Outside(Exchange& exchange, ArbiterClientOptions options);
    /// With another link to an arbiter, for tests.
    Outside(Exchange& exchange, const Connect& connect);
    /// Leaves. All CPUs are away then.
    ~Outside() override;

    /// True where the Exchange is shared: it then stays so, also while the arbiter is dead.
    [[nodiscard]] bool joined() const noexcept { return link_ != nullptr; }
    /// As ArbiterLink's.
    [[nodiscard]] bool fenced() const noexcept { return joined() && link_->fenced(); }
    /// Why it is not, in words; "" where nobody wanted it to be.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

    void changed() noexcept override;
    void decided(const Ledger& ledger, const Actions& actions) noexcept override;
    void rearranged(const Ledger& ledger) noexcept override;

  private:
    enum class Phase : uint8_t { kJoining, kJoined, kAlone };

    void decide(Phase phase);
    [[nodiscard]] bool has_joined() const;
    void gained(const CpuSet& cpus);
    void asked_back(const CpuSet& cpus);
    void count() noexcept;
    void settle();
    [[nodiscard]] CpuSet take_back();
    void lend_idle();
    void bring(const CpuSet& cpus);
    void show_user(const Ledger& ledger, int cpu) noexcept;

    Exchange& exchange_;
    std::string problem_;
    std::atomic<Phase> phase_{Phase::kJoining};  // the link's callbacks wait until it is decided

    // What was last settled; read without the mutex to see that there is nothing to settle.
    std::atomic<uint32_t> heard_demands_{0};
    std::atomic<uint32_t> heard_departures_{0};

    ComponentTable components_;

    std::mutex mutex_;                   // for all below
    int told_demand_ = -1;               // to the arbiter
    CpuSet lent_;                        // to other processes, and taken by none that we know of
    CpuSet leaving_;                     // asked back, and not answered yet
    std::unique_ptr<ArbiterLink> link_;  // the pointer itself never changes while others may use it
};

}  // namespace heddle
