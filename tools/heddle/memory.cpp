// heddle memory: servers of the directory/cache. `launch` starts the ranks of a program on this machine; for
// the others see memory_server.cpp, memory_status.cpp, memory_files.cpp and
// memory_checkpoint.cpp.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/scratch_folder.hpp"
#include "base/standard_streams.hpp"
#include "command.hpp"
#include "heddle/error.hpp"
#include "memory/meeting_place.hpp"

namespace heddle::tool {
namespace {

/// SIGINT, SIGTERM and SIGHUP for the ranks. None arrives while ranks are being started: one would be lost in
/// a rank that does not run its program yet. One object at a time.
class PassesSignalsOn {
  public:
    explicit PassesSignalsOn(const std::vector<pid_t>& ranks) {
        sigset_t blocked;
        ::sigemptyset(&blocked);
        for (const int signal : kSignals) ::sigaddset(&blocked, signal);
        ::sigprocmask(SIG_BLOCK, &blocked, &mask_before_);
        ranks_ = &ranks;
        struct sigaction action {};
        action.sa_flags = SA_SIGINFO;
        action.sa_sigaction = pass_on;
        for (size_t i = 0; i < kSignals.size(); ++i) {
            ::sigaction(kSignals[i], nullptr, &before_[i]);
            if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
        }
    }
    ~PassesSignalsOn() { restore(); }
    PassesSignalsOn(const PassesSignalsOn&) = delete;
    PassesSignalsOn& operator=(const PassesSignalsOn&) = delete;

    /// All ranks are there.
    void begin() { ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr); }
    /// In a rank: signals are as they were.
    void restore() {
        for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
        begin();
    }
    /// To the ranks that have not ended.
    static void send(int signal) {
        for (const pid_t rank : *ranks_)
            if (rank > 0) ::kill(rank, signal);
    }

  private:
    /// Ctrl-C the ranks have got from the terminal themselves. That it has gone is told to its first process.
    static void pass_on(int signal, siginfo_t* from, void* /*context*/) {
        if (signal != SIGINT || from->si_code != SI_KERNEL) send(signal);
    }

    static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
    inline static const std::vector<pid_t>* ranks_ = nullptr;
    std::array<struct sigaction, kSignals.size()> before_{};
    sigset_t mask_before_{};
};

/// Its ranks end with it, also where it is killed.
[[noreturn]] void become(const std::vector<std::string>& program, size_t rank, size_t ranks,
                         const std::string& folder, pid_t launcher) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != launcher) ::_exit(128 + SIGTERM);
    ::setenv("HEDDLE_RANK", fmt::format("{}/{}", rank, ranks).c_str(), 1);
    ::setenv("HEDDLE_MESH", folder.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& word : program) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    const int reason = errno;
    to_stderr("heddle memory launch: cannot start {}: {}\n", program[0], std::strerror(reason));
    ::_exit(reason == ENOENT ? 127 : 126);
}

int code_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The first code that is not 0, if any. When a rank fails, the others are asked to end.
int launch(const std::vector<std::string>& program, size_t ranks) {
    const ScratchFolder place(memory::meeting_place());
    std::vector<pid_t> pids;
    PassesSignalsOn signals(pids);
    const pid_t self = ::getpid();
    for (size_t rank = 0; rank < ranks; ++rank) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            signals.restore();
            become(program, rank, ranks, place.path(), self);
        }
        if (pid < 0) {
            const int reason = errno;
            PassesSignalsOn::send(SIGTERM);
            throw Error(ErrorCode::kSystem,
                        fmt::format("cannot start rank {}: {}", rank, std::strerror(reason)));
        }
        pids.push_back(pid);
    }
    signals.begin();
    int result = 0;
    for (size_t left = ranks; left > 0;) {
        int status = 0;
        const pid_t ended = ::wait(&status);
        if (ended < 0 && errno == EINTR) continue;
        if (ended < 0) break;
        const auto rank = std::find(pids.begin(), pids.end(), ended);
        if (rank == pids.end()) continue;  // a child of what this process was before its exec
        --left;
        *rank = 0;
        if (result != 0 || code_of(status) == 0) continue;
        result = code_of(status);
        if (left > 0)
            to_stderr("heddle memory launch: rank {} ended with {}; the others are asked to end\n",
                      rank - pids.begin(), result);
        PassesSignalsOn::send(SIGTERM);
    }
    return result;
}

struct LaunchOptions {
    size_t ranks = 0;
    std::vector<std::string> program;
};

}  // namespace

void add_memory(CLI::App& app) {
    CLI::App* const memory = app.add_subcommand("memory", "Servers of the directory/cache");
    memory->require_subcommand(1);
    const auto options = std::make_shared<LaunchOptions>();
    CLI::App* const command =
        memory->add_subcommand("launch", "Start the ranks of a program on this machine");
    command->add_option("-n,--ranks", options->ranks, "How many")->required()->check(CLI::Range(1, 1024));
    command->add_option("CMD", options->program, "The program and its arguments, after --")->required();
    command->callback([options] {
        if (!words_behind_dashes.empty()) options->program = words_behind_dashes;
        const int code = launch(options->program, options->ranks);
        if (code != 0) throw CLI::RuntimeError(code);
    });
    add_memory_server(*memory);
    add_memory_status(*memory);
    add_memory_files(*memory);
    add_memory_checkpoint(*memory);
}

}  // namespace heddle::tool
