// The text protocol of S-Net's resource server, both sides: whatever a client says, a session answers or
// hangs up, never uses a processor that it was not granted, and never grants one twice; whatever a server
// tells of its hardware is read or refused. The first byte is the size of the pieces that come.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cores/resserv_session.hpp"
#include "fuzz/fuzz.hpp"
#include "heddle/error.hpp"

using namespace heddle;           // NOLINT: each name here is of them
using namespace heddle::resserv;  // NOLINT

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2 || size > 4096) return 0;
    static const Machine machine = Machine::synthetic("numa:2 core:2 pu:2");
    const size_t piece = data[0] % 64 + 1;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);

    Session session(procs_of(machine, machine.cpus()), "host", 1);
    CpuSet arbiters = machine.cpus(), leaving;  // what the arbiter has, and what it waits for
    int demand = 0;
    const auto obey = [&](const Session::Actions& actions) {
        if (actions.demand) demand = *actions.demand;
        test::require(demand >= 0 && demand <= machine.cpus().count(), "a demand is one of this machine");
        test::require(leaving.contains(actions.returned), "what is returned was asked back");
        test::require(!arbiters.intersects(actions.lent) && !leaving.intersects(actions.lent),
                      "what is lent was granted");
        leaving -= actions.returned;
        arbiters |= actions.returned | actions.lent;
    };
    for (size_t at = 0; at < text.size(); at += piece) {
        const Session::Actions actions = session.received(text.substr(at, piece));
        obey(actions);
        if (actions.close) break;
        const CpuSet held = machine.cpus() - arbiters - leaving;
        if (held.count() < demand && !arbiters.empty()) {
            const CpuSet granted{arbiters.first()};
            arbiters -= granted;
            obey(session.granted(granted));
        } else if (held.count() > demand) {
            const CpuSet back{held.last()};
            leaving |= back;
            obey(session.asked_back(back));
        }
        test::require(!session.in_use().intersects(arbiters), "nothing is used that is the arbiter's");
    }

    try {
        (void)procs_in(text);
    } catch (const Error& error) {
        test::require(error.code() == ErrorCode::kBadInput, error.what());
    }
    return 0;
}
