// Child: a process of a test, killed at the latest when its handle goes.
//
// Owned by one thread of a test. It has a pidfd, so that a test waits for its end in the kernel.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/os.hpp"

namespace heddle::test {

using namespace std::chrono_literals;

class Child {
  public:
    Child() = default;
    /// `keep` >= 0 becomes descriptor 3 of the child. Variables are added to this process's own. The name of
    /// a file in `output` takes stdout and stderr.
    explicit Child(const std::vector<std::string>& words, const std::vector<std::string>& variables = {},
                   int keep = -1, const std::string& output = "") {
        std::vector<char*> argv, envp;
        for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
        for (const auto& variable : variables) envp.push_back(const_cast<char*>(variable.c_str()));
        const auto is_replaced = [&](std::string_view entry) {
            return std::ranges::any_of(variables, [&](const std::string& variable) {
                return entry.starts_with(std::string_view(variable).substr(0, variable.find('=') + 1));
            });
        };
        for (char** entry = environ; *entry != nullptr; ++entry)
            if (!is_replaced(*entry)) envp.push_back(*entry);
        argv.push_back(nullptr);
        envp.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        if (keep >= 0) posix_spawn_file_actions_adddup2(&actions, keep, 3);
        if (!output.empty()) {
            posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                             0600);
            posix_spawn_file_actions_adddup2(&actions, 1, 2);
        }
        const int failure = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
        posix_spawn_file_actions_destroy(&actions);
        if (failure != 0) {
            ADD_FAILURE() << "cannot start " << words[0] << ": " << std::strerror(failure);
            pid_ = -1;
            return;
        }
        pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    }
    Child(Child&& other) noexcept
        : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), status_(other.status_) {}
    Child& operator=(Child&& other) noexcept {
        if (this != &other) {
            end();
            pid_ = std::exchange(other.pid_, -1);
            pidfd_ = std::move(other.pidfd_);
            status_ = other.status_;
        }
        return *this;
    }
    ~Child() { end(); }

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool started() const { return pid_ > 0; }
    void signal(int number) const {
        if (pid_ > 0) ::kill(pid_, number);
    }
    /// True once it has ended.
    [[nodiscard]] bool ends_within(std::chrono::milliseconds limit) const {
        pollfd ended{pidfd_.get(), POLLIN, 0};
        return ::poll(&ended, 1, static_cast<int>(limit.count())) == 1;
    }
    [[nodiscard]] bool running() const { return started() && !ends_within(0ms); }
    /// Waits for the end and returns waitpid's status.
    int reap() {
        if (pid_ > 0) ::waitpid(pid_, &status_, 0);
        pid_ = -1;
        return status_;
    }
    /// Kills it, if it lives, and reaps it.
    void end() {
        if (pid_ <= 0) return;
        signal(SIGKILL);
        reap();
    }

    [[nodiscard]] int descriptors() const {
        const std::filesystem::path folder = "/proc/" + std::to_string(pid_) + "/fd";
        return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
    }
    /// What they are, for messages.
    [[nodiscard]] std::string open_files() const {
        std::string names;
        for (const auto& entry :
             std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd")) {
            std::error_code gone;
            names += " " + std::filesystem::read_symlink(entry, gone).string();
        }
        return names;
    }
    [[nodiscard]] long resident_bytes() const {
        std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
        long total = 0, resident = 0;
        file >> total >> resident;
        return resident * ::sysconf(_SC_PAGESIZE);
    }

    /// On a CPU so far, of its first thread.
    [[nodiscard]] double cpu_seconds() const {
        std::ifstream file("/proc/" + std::to_string(pid_) + "/schedstat");
        double nanoseconds = 0;
        file >> nanoseconds;
        return nanoseconds * 1e-9;
    }

  private:
    pid_t pid_ = -1;
    Descriptor pidfd_;
    int status_ = 0;
};

}  // namespace heddle::test
