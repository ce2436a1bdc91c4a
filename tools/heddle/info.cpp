// heddle info: the machine, what of it this process may use and why not more, and what is installed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "command.hpp"
#include "heddle/device.hpp"
#include "heddle/machine.hpp"
#include "heddle/memory.hpp"
#include "heddle/task.hpp"

namespace heddle::tool {
namespace {

using Json = nlohmann::ordered_json;

/// Why a CPU is not usable; "" for one that is. The cpuset comes first: the kernel cuts the affinity to it.
std::string limited_by(const CpuAllowance& allowed, int cpu) {
    if (allowed.usable.contains(cpu)) return "";
    if (!allowed.cpuset.contains(cpu)) return "cgroup cpuset";
    if (!allowed.affinity.contains(cpu)) return "affinity";
    return "CPU quota";
}

/// Those that this build knows, found or why not: EngineInfo, SegmentKindInfo.
template <class Info>
Json found_as_json(const std::vector<Info>& all) {
    Json list = Json::array();
    for (const Info& one : all)
        list.push_back({{"name", one.name},
                        {"available", one.available},
                        {"version", one.version},
                        {"reason", one.reason}});
    return list;
}

template <class Info>
void print_found(const char* heading, const std::vector<Info>& all) {
    for (const Info& one : all)
        fmt::print("{:<9} {:<13} {}\n", std::exchange(heading, ""), one.name,
                   !one.available        ? "not available: " + one.reason
                   : one.version.empty() ? "available"
                                         : one.version);
}

Json devices_as_json() {
    Json list = Json::array();
    for (const devices::DeviceInfo& device : devices::list_devices()) {
        Json one{{"name", device.name},       {"available", device.available},
                 {"version", device.version}, {"reason", device.reason},
                 {"kind", device.kind},       {"platform", device.platform},
                 {"units", device.units},     {"memory_bytes", device.memory_bytes}};
        if (device.available) {
            one["type"] = devices::to_string(device.type);
            one["shares_host_memory"] = device.shares_host_memory;
            one["has_images"] = device.has_images;
        }
        list.push_back(std::move(one));
    }
    return list;
}

void print_devices() {
    const char* heading = "devices";
    for (const devices::DeviceInfo& device : devices::list_devices()) {
        if (device.available)
            fmt::print("{:<9} {:<13} {} ({} {}), {} units{}\n", std::exchange(heading, ""), device.kind,
                       device.name, device.platform, devices::to_string(device.type), device.units,
                       device.shares_host_memory ? ", in the host's memory" : "");
        else
            fmt::print("{:<9} {:<13} not available: {}\n", std::exchange(heading, ""), device.kind,
                       device.reason);
    }
}

Json as_json(const Machine& machine, const CpuAllowance& allowed) {
    Json cpus = Json::array();
    for (const CpuPlace& place : machine.places()) {
        Json cpu{{"cpu", place.cpu}, {"core", place.core}, {"package", place.package}, {"numa", place.numa}};
        const std::string reason = limited_by(allowed, place.cpu);
        cpu["usable"] = reason.empty();
        if (!reason.empty()) cpu["limited_by"] = reason;
        cpus.push_back(std::move(cpu));
    }
    return {{"version", HEDDLE_VERSION},
            {"synthetic", machine.synthetic()},
            {"limits",
             {{"affinity", allowed.affinity.to_list()},
              {"cpuset", allowed.cpuset.to_list()},
              {"quota_cpus", allowed.quota_cpus}}},
            {"cpus", std::move(cpus)},
            {"engines", found_as_json(Runtime::engines())},
            {"segments", found_as_json(memory::segment_kinds())},
            {"devices", devices_as_json()}};
}

void print_limits(const Machine& machine, const CpuAllowance& allowed) {
    fmt::print("usable    {} of {} CPUs: {}\n", allowed.usable.count(), machine.cpus().count(),
               allowed.usable.to_list());
    if (!allowed.cpuset.contains(machine.cpus()))
        fmt::print("          the cgroup's cpuset allows {}\n", allowed.cpuset.to_list());
    if (!allowed.affinity.contains(machine.cpus() & allowed.cpuset))
        fmt::print("          the affinity of this process allows {}\n", allowed.affinity.to_list());
    if (allowed.quota_cpus > 0)
        fmt::print("          the cgroup's quota allows the time of {:.3g} CPUs\n", allowed.quota_cpus);
}

/// One line for each NUMA node, or part of one, in each package.
void print_nodes(const Machine& machine, const CpuAllowance& allowed) {
    fmt::print("\n{:<9} {:<10} {:<6} {:<20} {}\n", "package", "NUMA node", "cores", "CPUs", "usable");
    for (int package = 0; package < machine.package_count(); ++package) {
        for (int numa = 0; numa < machine.numa_count(); ++numa) {
            CpuSet cpus;
            CpuSet cores;
            for (const CpuPlace& place : machine.places()) {
                if (place.package != package || place.numa != numa) continue;
                cpus.insert(place.cpu);
                cores.insert(place.core);
            }
            if (cpus.empty()) continue;
            const CpuSet usable = cpus & allowed.usable;
            fmt::print("{:<9} {:<10} {:<6} {:<20} {}\n", package, numa, cores.count(), cpus.to_list(),
                       usable.empty()   ? "none"
                       : usable == cpus ? "all"
                                        : usable.to_list());
        }
    }
}

void print_text(const Machine& machine, const CpuAllowance& allowed) {
    fmt::print("heddle    {}\n", HEDDLE_VERSION);
    fmt::print("machine   {}\n", machine.summary());
    if (machine.synthetic())
        fmt::print("          described by HEDDLE_TOPOLOGY, not the machine this runs on\n");
    print_limits(machine, allowed);
    print_nodes(machine, allowed);
    fmt::print("\n");
    print_found("engines", Runtime::engines());
    print_found("segments", memory::segment_kinds());
    print_devices();
}

}  // namespace

void add_info(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("info", "The machine, engines, segments, devices: found or why not");
    const auto json = std::make_shared<bool>(false);
    command->add_flag("--json", *json, "print JSON");
    command->callback([json] {
        const Machine machine = Machine::detect();
        const CpuAllowance allowed = allowance(machine);
        if (*json)
            fmt::print("{}\n", as_json(machine, allowed).dump(2, ' ', false, Json::error_handler_t::replace));
        else
            print_text(machine, allowed);
    });
}

}  // namespace heddle::tool
