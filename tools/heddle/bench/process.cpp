#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "heddle/error.hpp"

namespace heddle::bench {
namespace {

constexpr size_t kKeptBytes = 1 << 16;  // of each stream; a program that writes more is not one of ours

Error system_error(const char* what) {
    return {ErrorCode::kSystem, fmt::format("{}: {}", what, std::strerror(errno))};
}

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) close(fd_);
    }
    [[nodiscard]] int get() const { return fd_; }

  private:
    int fd_ = -1;
};

struct Pipe {
    Descriptor read;
    Descriptor write;
    Pipe() {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("pipe2");
        read = Descriptor(ends[0]);
        write = Descriptor(ends[1]);
    }
};

std::string name_of(const std::string& assignment) {
    return assignment.substr(0, assignment.find('='));
}

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
    std::vector<std::string> result;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string name = name_of(*entry);
        if (std::ranges::none_of(changes, [&](const std::string& change) { return name_of(change) == name; }))
            result.emplace_back(*entry);
    }
    for (const std::string& change : changes)
        if (change.find('=') != std::string::npos) result.push_back(change);
    return result;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

/// One program from its start to its reaping. Ends it, and its group, if it is destroyed before.
class Program {
  public:
    explicit Program(const Command& command) {
        const std::vector<std::string> variables = merged_environment(command.environment);
        const std::vector<char*> argv = pointers(command.argv);
        const std::vector<char*> envp = pointers(variables);
        const std::vector<unsigned long> mask =
            command.cpus.empty() ? std::vector<unsigned long>{} : command.cpus.to_native();
        Pipe output;
        Pipe errors;
        Pipe failure;
        outcome_.started = std::chrono::steady_clock::now();
        pid_ = fork();
        if (pid_ < 0) throw system_error("fork");
        if (pid_ == 0) {
            become(argv, envp, mask, output.write.get(), errors.write.get());
            const int error = errno;
            (void)!write(failure.write.get(), &error, sizeof(error));
            _exit(127);
        }
        failure.write = Descriptor();
        int error = 0;
        if (read(failure.read.get(), &error, sizeof(error)) == static_cast<ssize_t>(sizeof(error))) {
            reap();
            throw Error(ErrorCode::kUnavailable,
                        fmt::format("cannot start {}: {}", command.argv.front(), std::strerror(error)));
        }
        pidfd_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
        if (pidfd_.get() < 0) {
            end();
            throw system_error("pidfd_open");
        }
        output_ = std::move(output.read);
        errors_ = std::move(errors.read);
        for (const int fd : {output_.get(), errors_.get()}) fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { end(); }

    [[nodiscard]] bool running() const { return pid_ > 0; }

    /// What to poll: its end and what it writes.
    void watch(std::vector<pollfd>& fds) const {
        for (const Descriptor* fd : {&pidfd_, &output_, &errors_}) fds.push_back({fd->get(), POLLIN, 0});
    }

    void drain() {
        read_into(output_, outcome_.output);
        read_into(errors_, outcome_.errors);
    }

    /// After its pidfd was readable.
    void reap() {
        outcome_.ended = std::chrono::steady_clock::now();
        int status = 0;
        rusage usage{};
        while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        outcome_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        const auto seconds = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
        };
        outcome_.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
        drain();
    }

    void end() {
        if (!running()) return;
        outcome_.cut = true;
        if (kill(-pid_, SIGKILL) != 0) kill(pid_, SIGKILL);
        reap();
    }

    [[nodiscard]] Outcome take_outcome() { return std::move(outcome_); }

  private:
    // Between fork and exec: only what is allowed there. Returns only when something failed.
    static void become(const std::vector<char*>& argv, const std::vector<char*>& envp,
                       const std::vector<unsigned long>& mask, int output, int errors) {
        if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
        const int nothing = open("/dev/null", O_RDONLY);
        if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0) return;
        close(nothing);
        if (!mask.empty() && sched_setaffinity(0, mask.size() * sizeof(unsigned long),
                                               reinterpret_cast<const cpu_set_t*>(mask.data())) != 0)
            return;
        execvpe(argv.front(), argv.data(), envp.data());
    }

    // Once nobody holds the other end, a pipe is always readable: it is then closed, lest poll spins on it.
    static void read_into(Descriptor& from, std::string& to) {
        if (from.get() < 0) return;
        std::array<char, 4096> buffer{};
        ssize_t got = 0;
        while ((got = read(from.get(), buffer.data(), buffer.size())) > 0)
            to.append(buffer.data(), std::min(static_cast<size_t>(got), kKeptBytes - to.size()));
        if (got == 0) from = Descriptor();
    }

    pid_t pid_ = -1;
    Descriptor pidfd_;
    Descriptor output_;
    Descriptor errors_;
    Outcome outcome_;
};

bool any_running(const std::vector<std::unique_ptr<Program>>& programs) {
    return std::ranges::any_of(programs, [](const auto& program) { return program->running(); });
}

}  // namespace

std::vector<Outcome> run_together(std::span<const Command> commands, Nanoseconds limit) {
    std::vector<std::unique_ptr<Program>> programs;
    const Time deadline = std::chrono::steady_clock::now() + limit;
    for (const Command& command : commands) programs.push_back(std::make_unique<Program>(command));

    std::vector<pollfd> fds;
    while (any_running(programs)) {
        const Nanoseconds left = deadline - std::chrono::steady_clock::now();
        if (left <= Nanoseconds::zero()) break;
        fds.clear();
        std::vector<Program*> watched;
        for (const auto& program : programs) {
            if (!program->running()) continue;
            program->watch(fds);
            watched.push_back(program.get());
        }
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
        const timespec wait{whole.count(), (left - whole).count()};
        if (ppoll(fds.data(), fds.size(), &wait, nullptr) < 0 && errno != EINTR) throw system_error("ppoll");
        for (size_t i = 0; i < watched.size(); ++i) {
            watched[i]->drain();
            if (fds[3 * i].revents != 0) watched[i]->reap();
        }
    }
    std::vector<Outcome> outcomes;
    for (const auto& program : programs) {
        program->end();
        outcomes.push_back(program->take_outcome());
    }
    return outcomes;
}

}  // namespace heddle::bench
