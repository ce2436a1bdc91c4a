// FileWatch: tells which of some files somebody has written (inotify(7)).
//
// Owned by one thread. Never throws but for want of memory: a file that cannot be watched is not, and where
// the system watches none, fd() is -1. What is written to a file of the system from another container, or on
// another machine, the kernel does not tell.
//
// A forked child shares the descriptor and takes events away from its parent: make a new one there.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace heddle {

class FileWatch {
  public:
    FileWatch();
    ~FileWatch();
    FileWatch(const FileWatch&) = delete;
    FileWatch& operator=(const FileWatch&) = delete;

    /// Readable (poll, epoll) when one of them was written.
    [[nodiscard]] int fd() const noexcept { return notify_; }
    /// Somebody who wanted to hear of some files wants to hear of others. A file is watched while somebody
    /// does.
    void change(const std::vector<std::string>& before, const std::vector<std::string>& now);
    /// Those that were written since the last call; empties the descriptor.
    [[nodiscard]] std::vector<std::string> written();

  private:
    struct Watched {
        int users = 0;
        int number = -1;  ///< inotify's; -1: it could not be watched, or was removed
    };
    int notify_;
    std::map<std::string, Watched> watched_;  ///< by path
};

}  // namespace heddle
