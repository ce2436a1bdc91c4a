// heddle trace record: writes what the arbiter decides to a file, for a time, during a command, or until
// interrupted.
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "../number_within.hpp"
#include "base/ending_signals.hpp"
#include "base/os.hpp"
#include "base/standard_streams.hpp"
#include "command.hpp"
#include "cores/observer.hpp"
#include "heddle/error.hpp"
#include "recorder.hpp"

namespace heddle::tool {
namespace {

struct Record {
    std::string output;
    double seconds = 0;
    std::vector<std::string> command;

    void run() const {
        // Before the recorder's thread exists, so that it inherits the mask.
        sigset_t signals = ending_signals();
        sigaddset(&signals, SIGCHLD);
        sigset_t before;
        sigprocmask(SIG_BLOCK, &signals, &before);
        const Descriptor arrived(::signalfd(-1, &signals, SFD_CLOEXEC));
        int exit_code = 0;
        try {
            Recorder recorder(Observer::default_path(), output);
            const pid_t child = command.empty() ? 0 : start(before);
            exit_code = wait(recorder, arrived.get(), child);
            finish(recorder, exit_code);
            if (child > 0 && exit_code == 0 && !recorder.saw_clients())
                to_stderr(
                    "heddle: nothing was under heddle meanwhile, so {} is empty. A program is by heddle run: "
                    "heddle trace record --out {} -- heddle run -- {}{}\n",
                    output, output, command.front(), command.size() > 1 ? " ..." : "");
        } catch (const Error& error) {
            if (error.code() == ErrorCode::kUnavailable) throw ServiceAbsent(error.what());
            throw;
        }
        if (exit_code != 0) throw CLI::RuntimeError(exit_code);
    }

    /// A command that failed ends the tool as it has ended, whatever became of the recording.
    static void finish(Recorder& recorder, int exit_code) {
        try {
            recorder.finish();
        } catch (const Error& error) {
            if (exit_code == 0) throw;
            to_stderr("heddle: {}\n", error.what());
        }
    }

    [[nodiscard]] pid_t start(const sigset_t& mask) const {
        const pid_t child = ::fork();
        if (child < 0) throw Error(ErrorCode::kSystem, "fork failed");
        if (child > 0) return child;
        sigprocmask(SIG_SETMASK, &mask, nullptr);
        std::vector<char*> words;
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        const int reason = errno;
        to_stderr("heddle: cannot run {}: {}\n", command[0], std::strerror(reason));
        ::_exit(reason == ENOENT ? 127 : 126);
    }

    [[nodiscard]] int wait(const Recorder& recorder, int signals, pid_t child) const {
        int exit_code = 0;
        const Time end = SteadyClock().now() + Nanoseconds(static_cast<int64_t>(seconds * 1e9));
        while (recorder.recording()) {
            int timeout_ms = 500;  // to see that the arbiter ended
            if (seconds > 0) {
                const auto left = (end - SteadyClock().now()) / std::chrono::milliseconds(1);
                if (left <= 0) break;
                timeout_ms = static_cast<int>(std::min<int64_t>(left, timeout_ms));
            }
            pollfd ready{signals, POLLIN, 0};
            if (::poll(&ready, 1, timeout_ms) != 1) continue;
            if (child > 0 ? has_ended(child, signals, exit_code) : next(signals).ssi_signo != SIGCHLD)
                return exit_code;
        }
        // There is nothing more to record; the command goes on.
        while (child > 0 && !has_ended(child, signals, exit_code)) {
        }
        return exit_code;
    }

    [[nodiscard]] static signalfd_siginfo next(int signals) {
        signalfd_siginfo signal{};
        (void)!::read(signals, &signal, sizeof signal);
        return signal;
    }
    /// Takes a signal, waiting for one. Ctrl-C the child has got from the terminal, too; anything else is for
    /// it.
    [[nodiscard]] static bool has_ended(pid_t child, int signals, int& exit_code) {
        const signalfd_siginfo signal = next(signals);
        const bool by_terminal = signal.ssi_signo == SIGINT && signal.ssi_code == SI_KERNEL;
        if (signal.ssi_signo != SIGCHLD && !by_terminal) ::kill(child, static_cast<int>(signal.ssi_signo));
        int status = 0;
        if (::waitpid(child, &status, WNOHANG) != child) return false;
        exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return true;
    }
};

}  // namespace

void add_trace_record(CLI::App& trace) {
    const auto record = std::make_shared<Record>();
    CLI::App* command = trace.add_subcommand("record", "Record who gets which CPU when, until interrupted");
    command->add_option("-o,--out", record->output, "file to write")->required();
    CLI::Option* seconds = command->add_option("--seconds", record->seconds, "end after so long")
                               ->check(number_within(0.001, 1e6));
    command->add_option("COMMAND", record->command, "end when this command ends (after --)")
        ->excludes(seconds);
    command->callback([record] {
        if (!words_behind_dashes.empty()) record->command = words_behind_dashes;
        record->run();
    });
}

}  // namespace heddle::tool
