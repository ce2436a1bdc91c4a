#include "base/scratch_folder.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace heddle {

ScratchFolder::Keeper ScratchFolder::start_keeper(const std::string& stem) {
    // Nobody reads what it says once we have been killed.
    static constexpr const char* kScript =
        "trap '' PIPE; folder=$(mktemp -d -- \"$0\") || exit; echo \"$folder/\"; read nothing; "
        "rm -rf -- \"$folder\"";
    int life[2], words_of_it[2];
    if (::pipe2(life, O_CLOEXEC) != 0) return {};
    const Descriptor ending(life[0]);
    Keeper keeper;
    keeper.alive = Descriptor(life[1]);
    if (::pipe2(words_of_it, O_CLOEXEC) != 0) return {};
    const Descriptor said(words_of_it[0]);
    Descriptor saying(words_of_it[1]);
    const std::string pattern = stem + "XXXXXX";
    const char* const words[] = {"sh", "-c", kScript, pattern.c_str(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ending.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, saying.get(), STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // Out of reach of Ctrl-C.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    if (::posix_spawn(&keeper.pid, "/bin/sh", &actions, &attributes, const_cast<char**>(words), environ) != 0)
        keeper.pid = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    saying = Descriptor();
    char text[PATH_MAX];
    ssize_t bytes;
    do {
        bytes = ::read(said.get(), text, sizeof text);
        if (bytes > 0) keeper.folder.append(text, static_cast<size_t>(bytes));
    } while ((bytes > 0 && !keeper.folder.ends_with("/\n")) || (bytes < 0 && errno == EINTR));
    if (!keeper.folder.ends_with("/\n")) {
        keeper.alive = Descriptor();
        if (keeper.pid > 0) ::waitpid(keeper.pid, nullptr, 0);
        return {};
    }
    keeper.folder.resize(keeper.folder.size() - 2);
    return keeper;
}

ScratchFolder::ScratchFolder(const std::string& stem) : ScratchFolder(start_keeper(stem), stem) {}

/// Without a keeper the folder goes with this object alone.
ScratchFolder::ScratchFolder(Keeper keeper, const std::string& stem)
    : TemporaryFolder(keeper.folder.empty() ? make(stem) : Made{keeper.folder}),
      alive_(std::move(keeper.alive)),
      keeper_(keeper.pid) {}

ScratchFolder::~ScratchFolder() {
    alive_ = Descriptor();
    if (keeper_ > 0) ::waitpid(keeper_, nullptr, 0);
}

}  // namespace heddle
