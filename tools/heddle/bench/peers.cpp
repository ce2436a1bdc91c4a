#include "peers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace heddle::bench {

namespace fs = std::filesystem;

namespace {

constexpr std::array kPeers = {
    Peer{"os", "as the operating system runs them"},
    Peer{"active", "OMP_WAIT_POLICY=active"},
    Peer{"passive", "OMP_WAIT_POLICY=passive"},
    Peer{"static", "an equal share of the CPUs each, by affinity"},
    Peer{"dlb", "the same on libomp under DLB: LeWI borrows through OMPT, from equal shares"},
    Peer{"heddle", "under heddle run"},
};

// What a user's shell may have set and would make one peer into another.
constexpr std::array kForeignVariables = {
    "OMP_NUM_THREADS", "OMP_WAIT_POLICY",   "OMP_PROC_BIND", "OMP_PLACES",
    "OMP_DYNAMIC",     "GOMP_SPINCOUNT",    "KMP_BLOCKTIME", "KMP_AFFINITY",
    "LD_PRELOAD",      "GOMP_CPU_AFFINITY", "DLB_ARGS",
};

CpuSet share_of(const CpuSet& cpus, Position position) {
    const size_t count = static_cast<size_t>(cpus.count());
    if (count < position.jobs) return cpus;
    const size_t from = count * position.job / position.jobs;
    const size_t to = count * (position.job + 1) / position.jobs;
    CpuSet share;
    size_t index = 0;
    for (const int cpu : cpus) {
        if (index >= from && index < to) share.insert(cpu);
        ++index;
    }
    return share;
}

// A key of its own, so that nothing an earlier driver left is found.
std::string dlb_key() {
    return fmt::format("heddle_bench_{}", getpid());
}

fs::path libomp_twin(const Command& bare) {
    return bare.argv.front() + "_libomp";
}

void prepend(Command& command, std::initializer_list<std::string> words) {
    command.argv.insert(command.argv.begin(), words);
}

}  // namespace

std::span<const Peer> peers() {
    return kPeers;
}

std::string why_not(std::string_view peer, const Command& bare, const Host& host) {
    if (peer != "dlb") return "";
    if (host.dlb.empty()) return "DLB was not found; set DLB_HOME to where it is installed";
    if (!fs::exists(libomp_twin(bare)))
        return fmt::format("DLB needs a program on libomp and there is none of {}",
                           fs::path(bare.argv.front()).filename().string());
    return "";
}

Command dress(std::string_view peer, Command bare, Position position, const Host& host) {
    Command command = std::move(bare);
    for (const char* const name : kForeignVariables) command.environment.emplace_back(name);
    const auto set = [&](const std::string& name, const std::string& value) {
        std::erase(command.environment, name);
        command.environment.push_back(name + "=" + value);
    };
    if (peer == "active" || peer == "passive") {
        set("OMP_WAIT_POLICY", std::string(peer));
    } else if (peer == "static") {
        command.cpus = share_of(host.cpus, position);
        set("OMP_NUM_THREADS", std::to_string(command.cpus.count()));
    } else if (peer == "dlb") {
        // As its user guide tells: a passive OpenMP on libomp, own CPUs for each process, dlb_run. CPUs of
        // processes that have ended may be used too, or a long job never gets those of a short one.
        command.argv.front() = libomp_twin(command);
        command.cpus = share_of(host.cpus, position);
        set("OMP_WAIT_POLICY", "passive");
        set("LD_PRELOAD", (host.dlb / "lib/libdlb.so").string());
        set("DLB_ARGS",
            fmt::format("--ompt --lewi --lewi-ompt=borrow --lewi-respect-cpuset=no --shm-key={}", dlb_key()));
        prepend(command, {(host.dlb / "bin/dlb_run").string()});
    } else if (peer == "heddle") {
        prepend(command, {host.heddle.string(), "run", "--require", "--"});
    }
    return command;
}

void clean_up(std::string_view peer) {
    if (peer != "dlb") return;
    std::error_code ignored;  // another user's segments, or one that goes meanwhile
    for (const auto& entry : fs::directory_iterator("/dev/shm", ignored))
        if (entry.path().filename().string().find(dlb_key()) != std::string::npos)
            fs::remove(entry.path(), ignored);
}

}  // namespace heddle::bench
