#include "host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

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

ScratchFolder::ScratchFolder(const std::string& stem) : TemporaryFolder(stem) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        throw Error(ErrorCode::kSystem, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    const Descriptor ending(ends[0]);
    alive_ = Descriptor(ends[1]);
    const char* const words[] = {"sh", "-c", "read nothing; rm -rf -- \"$0\"", path().c_str(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ending.get(), STDIN_FILENO);
    for (const int output : {STDOUT_FILENO, STDERR_FILENO})
        posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
    // Out of reach of Ctrl-C.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    if (::posix_spawn(&remover_, "/bin/sh", &actions, &attributes, const_cast<char**>(words), environ) != 0)
        remover_ = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
}

ScratchFolder::~ScratchFolder() {
    alive_ = Descriptor();
    if (remover_ > 0) ::waitpid(remover_, nullptr, 0);
}

OneAtATime::OneAtATime(const std::function<void()>& told) {
    const fs::path path = fs::temp_directory_path() / "heddle-bench.lock";
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
