#include "host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/temporary_folder.hpp"
#include "heddle/error.hpp"
#include "process.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle::bench {

namespace fs = std::filesystem;

namespace {

fs::path find_programs(const fs::path& heddle) {
    const fs::path prefix = heddle.parent_path().parent_path();
    for (const fs::path& folder : {prefix / "bench", prefix / HEDDLE_LIBEXECDIR "/heddle/bench"})
        if (fs::exists(folder / "calibrate")) return folder;
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the workload programs are neither in {0}/bench nor in {0}/{1}/heddle/bench; "
                            "build the whole project or install it",
                            prefix.string(), HEDDLE_LIBEXECDIR));
}

fs::path find_dlb() {
    const char* const home = std::getenv("DLB_HOME");
    fs::path prefix = home == nullptr ? "" : home;
    if (prefix.empty()) prefix = find_in_path("dlb_run").parent_path().parent_path();
    return !prefix.empty() && fs::exists(prefix / "lib/libdlb.so") ? prefix : fs::path{};
}

}  // namespace

OneAtATime::OneAtATime(const std::function<void()>& told) {
    const fs::path path = fs::path(TemporaryFolder::place()) / "heddle-bench.lock";
    // Another user's file can be locked, but not opened with O_CREAT, in a sticky folder.
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_CREAT, 0644);
    if (fd_ < 0 || flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    told();
    while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
}

OneAtATime::~OneAtATime() {
    if (fd_ >= 0) close(fd_);
}

fs::path find_in_path(const std::string& program) {
    const char* const path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        const fs::path candidate = fs::path(folder) / program;
        if (access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) return candidate;
    }
    return {};
}

Host find_host(const ScratchFolder& scratch) {
    Host host;
    // This is heddle-tool; the command that starts programs is beside it, or in bin where this is in
    // libexec/heddle.
    const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
    host.heddle = fs::exists(folder / "heddle") ? folder / "heddle" : folder / "../../bin/heddle";
    host.programs = find_programs(host.heddle);
    host.cpus = thread_affinity();
    host.dlb = find_dlb();
    host.scratch = scratch.path();
    return host;
}

void calibrate(Host& host) {
    const Command command{{(host.programs / "calibrate").string()}, {}, {}};
    const Outcome outcome = run_together({&command, 1}, std::chrono::seconds(60)).front();
    const auto line = nlohmann::json::parse(outcome.output, nullptr, false);
    if (outcome.exit_code != 0 || !line.is_object() || !line.contains("iterations_per_us"))
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("{} did not tell the speed of a core", command.argv.front()));
    host.iterations_per_us = line["iterations_per_us"];
}

}  // namespace heddle::bench
