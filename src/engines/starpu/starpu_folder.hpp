// StarPuFolder: the folder in which StarPU keeps what it has measured of a machine, for this process alone.
//
// StarPU 1.3.10 measures when it starts for the first time, or where the machine has changed, and writes
// files that another process reads while they are half written: it aborts then. So those who start it take
// turns. Who waits too long, for one that was stopped in its turn, goes on all the same. It aborts as well
// where it cannot write there: it gets a folder of its own then, which goes with this object, and measures
// each time.
#pragma once

#include <optional>
#include <string>

#include "base/descriptor.hpp"
#include "base/temporary_folder.hpp"

namespace heddle {

class StarPuFolder {
  public:
    /// Throws kUnavailable where nothing can be written, and says where.
    StarPuFolder();
    ~StarPuFolder();
    StarPuFolder(const StarPuFolder&) = delete;
    StarPuFolder& operator=(const StarPuFolder&) = delete;

  private:
    Descriptor lock_;
    std::optional<TemporaryFolder> own_;
    std::optional<std::string> named_;  // by the user, while it has its own
};

}  // namespace heddle
