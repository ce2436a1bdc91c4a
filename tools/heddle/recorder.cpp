#include "recorder.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cores/observer.hpp"
#include "heddle/error.hpp"
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

/// What an arbiter's events are in a trace, with what they do not say: who owns a CPU, and for how many a
/// client waits.
class Translator {
  public:
    explicit Translator(const ArbiterSnapshot& now) { learn(now); }

    /// Of all that are clients by now. What became theirs when they joined is told by the next event.
    void learn(const ArbiterSnapshot& now) {
        for (const ArbiterSnapshot::Client& status : now.clients) {
            const auto [place, is_new] = clients_.try_emplace(status.id);
            if (!is_new) continue;
            place->second.most = status.max > 0 ? status.max : CpuSet::kMaxCpus;
            place->second.owned = status.owned;
        }
    }
    [[nodiscard]] bool knows(uint32_t client) const { return clients_.contains(client); }

    [[nodiscard]] std::vector<Event> translate(const heddle_event& event, int64_t at_ns) {
        std::vector<Event> all;
        const auto add = [&](auto what) { all.push_back({at_ns, std::move(what)}); };
        const trace::Client client{event.client};
        switch (event.kind) {
            case HEDDLE_EVENT_JOINED:
                add(trace::Joined{
                    client, event.value, {event.name, ::strnlen(event.name, sizeof event.name)}});
                for (const int cpu : clients_[event.client].owned) add(changed(cpu));
                break;
            case HEDDLE_EVENT_LEFT: {
                const CpuSet owned = clients_[event.client].owned;
                std::erase_if(users_, [&](const auto& one) { return one.second == event.client; });
                clients_.erase(event.client);
                add(trace::Left{client,
                                event.value == 0 ? trace::Departure::kDetached : trace::Departure::kExit});
                for (const int cpu : owned) add(changed(cpu));
                break;
            }
            case HEDDLE_EVENT_CPU: {
                const uint32_t before = std::exchange(users_[event.cpu], event.client);
                add(changed(event.cpu));
                for (const uint32_t one : {before, event.client})
                    if (const auto waits = waiting(one)) add(*waits);
                break;
            }
            default:
                clients_[event.client].demand = event.value;
                add(trace::DemandChanged{client, event.value});
                if (const auto waits = waiting(event.client)) add(*waits);
        }
        return all;
    }

  private:
    struct Known {
        int64_t demand = 0, waits = 0, most = CpuSet::kMaxCpus;
        CpuSet owned;
    };

    [[nodiscard]] trace::CpuChanged changed(int cpu) const {
        trace::CpuChanged change;
        change.cpu = cpu;
        if (const auto user = users_.find(cpu); user != users_.end() && user->second != 0)
            change.user = trace::Client{user->second};
        for (const auto& [client, known] : clients_)
            if (known.owned.contains(cpu)) change.owner = trace::Client{client};
        return change;
    }
    /// Nothing where it waits for as many as before.
    [[nodiscard]] std::optional<trace::WaitingChanged> waiting(uint32_t client) {
        const auto found = clients_.find(client);
        if (found == clients_.end()) return std::nullopt;
        Known& known = found->second;
        const auto held =
            std::ranges::count_if(users_, [&](const auto& one) { return one.second == client; });
        const int64_t waits = std::max<int64_t>(0, std::min(known.demand, known.most) - held);
        if (std::exchange(known.waits, waits) == waits) return std::nullopt;
        return trace::WaitingChanged{trace::Client{client}, waits};
    }

    std::map<uint32_t, Known> clients_;
    std::map<int, uint32_t> users_;  // by CPU; 0: nobody
};

void learn_of_newcomers(const std::string& arbiter_path, Translator& translator) {
    try {
        translator.learn(Observer(arbiter_path).status());
    } catch (const Error&) {
        // The arbiter has gone: so have its clients.
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
        const ArbiterSnapshot first = observer.status();
        const trace::Header header = header_of(Machine::detect(), first);
        saw_clients_ = !first.clients.empty();
        Translator translator(first);
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
                if (event->kind == HEDDLE_EVENT_JOINED) {
                    saw_clients_ = true;
                    if (!translator.knows(event->client)) learn_of_newcomers(arbiter_path, translator);
                }
                for (const Event& one : translator.translate(*event, writer.at(moment)))
                    if (writer.write(one) == trace::Written::kTruncated) stop_ = true;
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
