#include "strays.hpp"

#include <poll.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "heddle/machine.hpp"

namespace heddle::tool {
namespace {

constexpr int kLooks = 3;
constexpr int kBetweenLooks = 5;  // ms

/// The CPU that the thread runs on, or waits for in the state R. -1: it sleeps, or is gone.
int runs_on(const std::filesystem::path& thread) {
    std::ifstream file(thread / "stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return -1;
    std::istringstream fields(text.substr(name_end + 1));
    std::string state, skipped;
    fields >> state;  // the third field of proc(5); the CPU is the 39th
    for (int field = 4; field < 39; ++field) fields >> skipped;
    int cpu = -1;
    fields >> cpu;
    return fields && state == "R" && cpu >= 0 ? cpu : -1;
}

CpuSet cpus_run_on(uint32_t process) {
    CpuSet cpus;
    std::error_code gone;
    const std::filesystem::path threads = "/proc/" + std::to_string(process) + "/task";
    for (std::filesystem::directory_iterator thread(threads, gone), end; !gone && thread != end;
         thread.increment(gone))
        if (const int cpu = runs_on(thread->path()); cpu >= 0) cpus.insert(cpu);
    return cpus;
}

}  // namespace

std::map<uint32_t, CpuSet> strays(const ArbiterSnapshot& status) {
    std::map<uint32_t, CpuSet> held;  // by process, which may be several clients
    for (const auto& client : status.clients)
        if (!client.granted.empty()) held[client.pid] |= client.granted;
    if (held.size() < 2 || Machine::detect().synthetic()) return {};
    const auto held_by_others = [&](uint32_t process) {
        CpuSet cpus;
        for (const auto& [other, its] : held)
            if (other != process) cpus |= its;
        return cpus - held.at(process);
    };
    std::map<uint32_t, CpuSet> found;
    for (int look = 0; look < kLooks; ++look) {
        if (look > 0) ::poll(nullptr, 0, kBetweenLooks);
        for (const auto& client : status.clients) {
            if (client.granted.empty()) continue;
            CpuSet& cpus = found.try_emplace(client.id, held_by_others(client.pid)).first->second;
            if (!cpus.empty()) cpus &= cpus_run_on(client.pid);
        }
    }
    std::erase_if(found, [](const auto& one) { return one.second.empty(); });
    return found;
}

}  // namespace heddle::tool
