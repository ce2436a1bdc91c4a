// heddle status: who holds which core, and who wants more.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>

#include "command.hpp"
#include "cores/observer.hpp"
#include "heddle/error.hpp"
#include "status_text.hpp"
#include "strays.hpp"

namespace heddle::tool {
namespace {

using json = nlohmann::ordered_json;  // as the manual lists the members

std::vector<int> numbers(const CpuSet& cpus) {
    return {cpus.begin(), cpus.end()};
}

json fenced_by(uint32_t what) {
    switch (what) {
        case HEDDLE_FENCED_BY_AFFINITY:
            return "affinity";
        case HEDDLE_FENCED_BY_CPUSET:
            return "cpuset";
        default:
            return nullptr;
    }
}

json components_of(const ArbiterSnapshot& status, uint32_t client) {
    json components = json::array();
    for (const auto& component : status.components)
        if (component.client == client)
            components.push_back({{"name", component.name},
                                  {"cpus", numbers(component.cpus)},
                                  {"inserted", component.work.inserted},
                                  {"ended", component.work.ended}});
    return components;
}

json to_json(const ArbiterSnapshot& status, const std::map<uint32_t, CpuSet>& astray) {
    json cpus = json::array();
    for (const auto& cpu : status.cpus)
        cpus.push_back({{"cpu", cpu.cpu},
                        {"client", cpu.client == 0 ? json() : json(cpu.client)},
                        {"component", cpu.component.empty() ? json() : json(cpu.component)}});
    json clients = json::array();
    for (const auto& c : status.clients)
        clients.push_back({{"id", c.id},
                           {"pid", c.pid},
                           {"name", c.name},
                           {"demand", c.demand},
                           {"granted", numbers(c.granted)},
                           {"owned", numbers(c.owned)},
                           {"lent", numbers(c.lent)},
                           {"away", c.away},
                           {"fenced", fenced_by(c.fenced)},
                           {"strays", astray.contains(c.id) ? numbers(astray.at(c.id)) : std::vector<int>()},
                           {"min", c.min},
                           {"max", c.max},
                           {"weight", c.weight},
                           {"cpu_seconds", c.cpu_seconds},
                           {"components", components_of(status, c.id)}});
    return {{"arbiter", {{"pid", status.pid}, {"policy", status.policy}, {"uptime_s", status.uptime_s}}},
            {"core_seconds", {{"used", status.used_s}, {"lent", status.lent_s}, {"idle", status.idle_s}}},
            {"cpus", cpus},
            {"clients", clients}};
}

}  // namespace

void add_status(CLI::App& app) {
    CLI::App* command = app.add_subcommand("status", "Who holds which core, who wants more");
    const auto as_json = std::make_shared<bool>(false);
    command->add_flag("--json", *as_json, "The same for programs");
    command->callback([as_json] {
        try {
            Observer observer(Observer::default_path());
            const ArbiterSnapshot status = counted_status(observer);
            const auto astray = strays(status);
            if (*as_json) {
                fmt::print("{}\n",
                           to_json(status, astray).dump(2, ' ', false, json::error_handler_t::replace));
            } else {
                fmt::print("{}", status_text(status, nullptr, 0, astray));
            }
        } catch (const Error& error) {
            if (error.code() == ErrorCode::kUnavailable) throw ServiceAbsent(error.what());
            throw;
        }
    });
}

}  // namespace heddle::tool
