// StartingAlone: who starts where a socket was left looks alone whether somebody is behind it.
//
// Owned by one thread.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "base/descriptor.hpp"

namespace heddle::memory {

/// While it is there, no other server starts or ends at a path of that folder; or where somebody keeps it for
/// long, for nothing.
class StartingAlone {
  public:
    explicit StartingAlone(const std::string& path) {
        const std::string folder = std::filesystem::path(path).parent_path();
        folder_ =
            Descriptor(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        for (int i = 0; folder_.valid() && i < 100 && ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }

  private:
    Descriptor folder_;
};

}  // namespace heddle::memory
