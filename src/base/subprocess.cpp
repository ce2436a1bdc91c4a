#include "base/subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0)
            throw Error(ErrorCode::kSystem, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
        reading = Descriptor(ends[0]);
        writing = Descriptor(ends[1]);
    }
    Descriptor reading, writing;
};

class SpawnActions {
  public:
    SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
    ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;
    [[nodiscard]] posix_spawn_file_actions_t* get() { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_{};
};

/// Both to their ends.
void drain(const Pipe& first, std::string& first_text, const Pipe& second, std::string& second_text) {
    std::array<pollfd, 2> ends{{{first.reading.get(), POLLIN, 0}, {second.reading.get(), POLLIN, 0}}};
    const std::array<std::string*, 2> texts{&first_text, &second_text};
    std::array<char, 65536> buffer;
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (::poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
        for (size_t which = 0; which < ends.size(); ++which) {
            if (ends[which].fd < 0 || ends[which].revents == 0) continue;
            const ssize_t got = ::read(ends[which].fd, buffer.data(), buffer.size());
            if (got > 0) texts[which]->append(buffer.data(), static_cast<size_t>(got));
            if (got == 0 || (got < 0 && errno != EINTR)) ends[which].fd = -1;
        }
    }
}

}  // namespace

Output output_of(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    Pipe out, err;
    SpawnActions actions;
    ::posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(actions.get(), out.writing.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(actions.get(), err.writing.get(), STDERR_FILENO);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, arguments[0], actions.get(), nullptr, arguments.data(), environ);
    if (error == ENOENT)
        throw Error(ErrorCode::kUnavailable, fmt::format("there is no program {} here", command[0]));
    if (error != 0)
        throw Error(ErrorCode::kSystem, fmt::format("cannot start {}: {}", command[0], std::strerror(error)));
    out.writing = {};
    err.writing = {};
    Output output;
    drain(out, output.text, err, output.errors);
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
    output.exit_code = ended != child ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended != child)
        output.errors +=
            fmt::format("nobody can tell how {} ended while this process ignores SIGCHLD\n", command[0]);
    return output;
}

}  // namespace heddle
