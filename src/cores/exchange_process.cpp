// The Exchange of this process, and whether it is joined to the arbiter.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/forks.hpp"
#include "base/settings.hpp"
#include "base/standard_streams.hpp"
#include "cores/client_settings.hpp"
#include "cores/exchange.hpp"
#include "cores/outside.hpp"
#include "heddle/error.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

/// Under `heddle run` the library that it loads speaks for the process, and a second client would ask for the
/// same CPUs again.
bool spoken_for() {
    const char* loaded = std::getenv("LD_PRELOAD");
    return loaded != nullptr && std::string_view(loaded).find("libheddle-launch") != std::string_view::npos;
}

/// As heddle's tools tell of those. `heddle run` and `heddle memory launch`, which names the rank, have done
/// so before they started the process.
void tell_of_unknown_settings() {
    if (spoken_for() || !setting("HEDDLE_RANK").empty()) return;
    for (const std::string& line : untold_settings()) to_stderr("heddle: {}\n", line);
}

/// A machine that is only described is not the one whose CPUs the user's arbiter hands out, unless somebody
/// says so.
bool is_elsewhere(const Machine& machine) {
    const std::string arbiter = setting("HEDDLE_ARBITER");
    return machine.synthetic() && (arbiter.empty() || arbiter == "auto");
}

/// This process as a client of the arbiter, and where its threads could run when it became one. Lives as long
/// as the exchange, which is for ever.
struct Client {
    explicit Client(Exchange& exchange) : outside(exchange, ArbiterClientOptions{}) {}
    const CpuSet affinity = outer_affinity();
    Outside outside;
};

/// A forked child has CPUs of its own, or none: the parent's ledger and its locks are as they were then.
struct OfProcess {
    const unsigned made_after = forks();
    std::mutex making;
    std::atomic<Exchange*> exchange{nullptr};
    std::atomic<const Client*> client{nullptr};
};

OfProcess& of_process() {
    static std::atomic<OfProcess*> last{nullptr};  // never destroyed: others may use it as the process ends
    OfProcess* own = last.load(std::memory_order_acquire);
    while (own == nullptr || own->made_after != forks()) {
        auto made = std::make_unique<OfProcess>();
        if (last.compare_exchange_strong(own, made.get(), std::memory_order_acq_rel)) return *made.release();
    }
    return *own;
}

const CpuSet* affinity_as_registered() noexcept {
    const Client* const client = of_process().client.load(std::memory_order_acquire);
    return client != nullptr && client->outside.fenced() ? &client->affinity : nullptr;
}

Exchange& make(OfProcess& own) {
    tell_of_unknown_settings();
    check_client_settings();  // also where nobody reads them: a user who set one wants to know
    const Machine machine = Machine::detect();
    auto* exchange = new Exchange(machine);
    if (spoken_for() || is_elsewhere(machine)) return *exchange;
    try {
        auto client = std::make_unique<Client>(*exchange);
        if (!client->outside.joined()) return *exchange;
        own.client.store(client.release(), std::memory_order_release);
        tell_affinity_before_fence(affinity_as_registered);
    } catch (const Error&) {
        // The system says no: the process keeps to itself.
    }
    return *exchange;
}

}  // namespace

Exchange& Exchange::process() {
    OfProcess& own = of_process();
    if (Exchange* const made = own.exchange.load(std::memory_order_acquire)) return *made;
    const std::lock_guard guard(own.making);
    if (own.exchange == nullptr) own.exchange = &make(own);
    return *own.exchange;
}

}  // namespace heddle
