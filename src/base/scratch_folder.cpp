#include "base/scratch_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "heddle/error.hpp"

namespace heddle {

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

}  // namespace heddle
