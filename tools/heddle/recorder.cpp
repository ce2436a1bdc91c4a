#include "recorder.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "cores/observer.hpp"
#include "heddle/machine.hpp"
#include "trace/writer.hpp"

namespace heddle::tool {
namespace {

using trace::Event;

int64_t wall_now_ns() {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// The arbiter may know CPUs that are offline now, or those of a machine that was described to it.
trace::Header header_of(const Machine& machine, const ArbiterSnapshot& arbiter) {
    trace::Header header;
    header.machine = machine.summary();
    header.cpus = machine.places();
    CpuSet others;
    for (const ArbiterSnapshot::Cpu& cpu : arbiter.cpus) others.insert(cpu.cpu);
    for (const ArbiterSnapshot::Client& client : arbiter.clients) others |= client.granted | client.owned;
    for (const int cpu : others - machine.cpus()) header.cpus.push_back({.cpu = cpu});
    header.start_ns = SteadyClock().now().time_since_epoch().count();
    header.wall_ns = wall_now_ns();
    return header;
}

/// What an arbiter's event is in a trace.
Event event_of(const heddle_event& event, int64_t at_ns) {
    const trace::Client client{event.client};
    switch (event.kind) {
        case HEDDLE_EVENT_JOINED:
            return {at_ns, trace::Joined{
                               client, event.value, {event.name, ::strnlen(event.name, sizeof event.name)}}};
        case HEDDLE_EVENT_LEFT:
            return {at_ns, trace::Left{client, event.value == 0 ? trace::Departure::kDetached
                                                                : trace::Departure::kExit}};
        case HEDDLE_EVENT_CPU: {
            trace::CpuChanged changed;
            changed.cpu = event.cpu;
            if (event.client != 0) changed.user = client;
            return {at_ns, changed};
        }
        default:
            return {at_ns, trace::DemandChanged{client, event.value}};
    }
}

}  // namespace

Recorder::Recorder(const std::string& arbiter_path, const std::string& file)
    : wake_(::eventfd(0, EFD_CLOEXEC)) {
    std::atomic<int> started = 0;
    thread_ = std::thread([&, arbiter_path, file] { record(arbiter_path, file, started); });
    started.wait(0);
    if (started == 1) return;
    thread_.join();
    std::rethrow_exception(failure_);
}

Recorder::~Recorder() {
    try {
        finish();
    } catch (...) {  // whoever wants to know calls finish() before
    }
}

void Recorder::finish() {
    stop_ = true;
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Recorder::record(const std::string& arbiter_path, const std::string& file, std::atomic<int>& started) {
    bool announced = false;
    const auto announce = [&](int how) {
        if (std::exchange(announced, true)) return;
        started = how;
        started.notify_one();
    };
    try {
        Observer observer(arbiter_path);
        const trace::Header header = header_of(Machine::detect(), observer.status());
        trace::TraceWriter writer(file, header);
        CpuSet known;
        for (const CpuPlace& place : header.cpus) known.insert(place.cpu);
        writer.flush();
        observer.watch();
        announce(1);
        while (true) {
            pollfd ready[] = {{observer.descriptor(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
            ::poll(ready, 2, -1);
            while (const auto event = observer.next_event(Nanoseconds(0))) {
                const Time moment{Nanoseconds(static_cast<int64_t>(event->time_ns))};
                // A CPU that came later has no place in the file.
                if (event->kind == HEDDLE_EVENT_CPU && !known.contains(event->cpu)) continue;
                if (writer.write(event_of(*event, writer.at(moment))) == trace::Written::kTruncated)
                    stop_ = true;
            }
            writer.flush();  // what a killed recorder leaves is up to date
            if (stop_) break;
        }
        writer.finish(writer.at(SteadyClock().now()));
    } catch (...) {
        failure_ = std::current_exception();
    }
    recording_ = false;
    announce(failure_ ? 2 : 1);
}

}  // namespace heddle::tool
