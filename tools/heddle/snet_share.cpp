#include "snet_share.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "command.hpp"
#include "cores/exchange.hpp"
#include "cores/outside.hpp"
#include "cores/resserv_link.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"

namespace heddle::tool {

void announce_streams(const std::string& program, int min, int max) {
    if (max > 0 && min > max)
        throw UsageError(fmt::format("at least {} workers are more than {} at most", min, max));
    ::setenv("HEDDLE_NAME", std::filesystem::path(program).stem().c_str(), 0);
    if (min > 0) ::setenv("HEDDLE_MIN", std::to_string(min).c_str(), 0);
    if (max > 0) ::setenv("HEDDLE_MAX", std::to_string(max).c_str(), 0);
}

void join_resource_server(const std::string& place) {
    ::setenv("HEDDLE_ARBITER", "off", 1);
    Exchange& exchange = Exchange::process();
    const CpuSet usable =
        allowance(exchange.ask([](const Ledger& ledger) { return ledger.machine(); })).usable;
    // As long as the exchange, which is for ever: the connection ends with the process.
    static const Outside outside(exchange, [&](ArbiterLink::Callbacks callbacks) {
        return std::make_unique<ResservLink>(place, usable, std::move(callbacks));
    });
}

}  // namespace heddle::tool
