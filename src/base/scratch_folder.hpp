// ScratchFolder: a TemporaryFolder that goes even where its process is killed: a program that sleeps beside
// it has made it, and takes it away then.
//
// For one thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/descriptor.hpp"
#include "base/temporary_folder.hpp"

namespace heddle {

class ScratchFolder : public TemporaryFolder {
  public:
    /// In place(), where no other stem is given. Throws kSystem.
    explicit ScratchFolder(const std::string& stem = place() + "/heddle-scratch-");
    ~ScratchFolder();

  private:
    struct Keeper {
        Descriptor alive;  ///< closed when this process ends, however it does
        pid_t pid = -1;
        std::string folder;  ///< "": it could make none
    };
    explicit ScratchFolder(Keeper keeper, const std::string& stem);
    static Keeper start_keeper(const std::string& stem);

    Descriptor alive_;
    pid_t keeper_;
};

}  // namespace heddle
