#include "status_text.hpp"

#include <fmt/format.h>

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>

namespace heddle::tool {
namespace {

/// Backgrounds of the 256-colour palette on which black letters can be read.
constexpr std::array kBackgrounds = {75, 214, 114, 176, 221, 80, 203, 147, 150, 180};

using Component = ArbiterSnapshot::Component;

/// "12 of 15 done, 40 a second", or nothing where it does not count; of a box its records and its queue.
std::string work_text(const Component& component, const ArbiterSnapshot* before, double seconds) {
    const WorkCounts& work = component.work;
    if (work.inserted == 0) return "";
    const uint64_t all = std::max(work.inserted, work.ended);
    // A box of a network of streams (docs/STREAMS.md): its pieces of work are records.
    std::string text = component.name.starts_with("box ")
                           ? fmt::format("{} records, {} of them in the queue", all, all - work.ended)
                           : fmt::format("{} of {} done", work.ended, all);
    if (before == nullptr || seconds <= 0) return text;
    const auto same = std::ranges::find_if(before->components, [&](const Component& other) {
        return other.client == component.client && other.name == component.name;
    });
    if (same == before->components.end() || same->work.ended > work.ended) return text;
    return text +=
           fmt::format(", {:.0f} a second", static_cast<double>(work.ended - same->work.ended) / seconds);
}

/// A row for each component of the client, under the client's.
std::string component_rows(const ArbiterSnapshot& status, uint32_t client, const ArbiterSnapshot* before,
                           double seconds) {
    std::map<std::string, const Component*> components;  // in the order of their names
    for (const Component& component : status.components)
        if (component.client == client) components[component.name] = &component;
    std::string rows;
    for (const auto& [name, component] : components) {
        const std::string work = work_text(*component, before, seconds);
        const std::string cpus = component->cpus.to_list();
        rows +=
            fmt::format("{:20}  {:<18.18} {:>6} {:>5} {:>12}  {}{}{}\n", "", name, "",
                        component->cpus.count(), "", cpus, cpus.empty() || work.empty() ? "" : "  ", work);
    }
    return rows;
}

}  // namespace

char letter_of(uint32_t client) {
    return static_cast<char>('A' + (client - 1) % 26);
}

ArbiterSnapshot counted_status(Observer& observer) {
    ArbiterSnapshot status = observer.status();
    if (status.components.empty()) return status;
    constexpr int kProgramsAnswerWithin = 30;  // ms
    ::poll(nullptr, 0, kProgramsAnswerWithin);
    return observer.status();
}

std::string status_text(const ArbiterSnapshot& status, const ArbiterSnapshot* before, double seconds,
                        const std::map<uint32_t, CpuSet>& astray) {
    int idle = 0;
    for (const auto& cpu : status.cpus) idle += cpu.client == 0 ? 1 : 0;
    std::string text = fmt::format("arbiter {}, policy {}, up {:.0f} s; {} CPUs, {} free, {} client{}\n",
                                   status.pid, status.policy, status.uptime_s, status.cpus.size(), idle,
                                   status.clients.size(), status.clients.size() == 1 ? "" : "s");
    text += fmt::format("core-seconds: {:.2f} used, {:.2f} of them lent, {:.2f} idle\n", status.used_s,
                        status.lent_s, status.idle_s);
    if (status.clients.empty()) return text;
    text += fmt::format("     {:>4} {:>8}  {:<20} {:>6} {:>5} {:>12}  {}\n", "id", "pid", "name", "wants",
                        "holds", "core-seconds", "CPUs");
    for (const auto& c : status.clients) {
        text += fmt::format("  {}  {:>4} {:>8}  {:<20.20} {:>6} {:>5} {:>12.2f}  {}\n", letter_of(c.id), c.id,
                            c.pid, c.away ? "(away) " + c.name : c.name, c.demand, c.granted.count(),
                            c.cpu_seconds, c.granted.to_list());
        if (const auto place = astray.find(c.id); place != astray.end())
            text += fmt::format("{:20}  runs on {} too, where others should\n", "", place->second.to_list());
        text += component_rows(status, c.id, before, seconds);
    }
    return text;
}

std::vector<std::string> core_map(const ArbiterSnapshot& status, int width, bool colour) {
    std::vector<std::string> rows;
    constexpr int kLabel = 7;
    const int cells = std::max(1, (width - kLabel) / 2);
    for (size_t i = 0; i < status.cpus.size(); ++i) {
        const auto& cpu = status.cpus[i];
        if (i % static_cast<size_t>(cells) == 0) rows.push_back(fmt::format("{:>5}  ", cpu.cpu));
        const char letter = cpu.client == 0 ? '.' : letter_of(cpu.client);
        const char shown = cpu.leaving ? static_cast<char>(letter - 'A' + 'a') : letter;
        rows.back() += colour && cpu.client != 0
                           ? fmt::format("\x1b[30;48;5;{}m{}\x1b[0m ",
                                         kBackgrounds[(cpu.client - 1) % kBackgrounds.size()], shown)
                           : fmt::format("{} ", shown);
    }
    return rows;
}

}  // namespace heddle::tool
