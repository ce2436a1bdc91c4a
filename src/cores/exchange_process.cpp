// The Exchange of this process, and whether it is joined to the arbiter.
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/settings.hpp"
#include "cores/client_settings.hpp"
#include "cores/exchange.hpp"
#include "cores/outside.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

/// Under `heddle run` the library that it loads speaks for the process, and a second client would ask for the
/// same CPUs again.
bool spoken_for() {
    const char* loaded = std::getenv("LD_PRELOAD");
    return loaded != nullptr && std::string_view(loaded).find("libheddle-launch") != std::string_view::npos;
}

/// A machine that is only described is not the one whose CPUs the user's arbiter hands out, unless somebody
/// says so.
bool is_elsewhere(const Machine& machine) {
    const std::string arbiter = setting("HEDDLE_ARBITER");
    return machine.synthetic() && (arbiter.empty() || arbiter == "auto");
}

Exchange& make() {
    check_client_settings();  // also where nobody reads them: a user who set one wants to know
    const Machine machine = Machine::detect();
    auto* exchange = new Exchange(machine);
    if (spoken_for() || is_elsewhere(machine)) return *exchange;
    try {
        // Lives as long as the exchange, which is for ever.
        auto* outside = new Outside(*exchange, ArbiterClientOptions{});
        if (!outside->joined()) delete outside;
    } catch (const Error&) {
        // The system says no: the process keeps to itself.
    }
    return *exchange;
}

}  // namespace

Exchange& Exchange::process() {
    static Exchange& exchange = make();
    return exchange;
}

}  // namespace heddle
