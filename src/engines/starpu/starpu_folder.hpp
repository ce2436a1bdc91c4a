// StarPuFolder: the folder in which StarPU keeps what it has measured of a machine, for this process alone.
//
// StarPU 1.3.10 measures when it starts for the first time, or where the machine has changed, and writes
// files that another process reads while they are half written: it aborts then. So those who start it take
// turns. Who waits too long, for one that was stopped in its turn, goes on all the same.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cstdlib>
#include <thread>

#include "base/clock.hpp"
#include "base/descriptor.hpp"

namespace heddle {

class StarPuFolder {
  public:
    StarPuFolder() {
        for (const char* name : {"STARPU_PERF_MODEL_DIR", "XDG_CACHE_HOME", "STARPU_HOME", "HOME"}) {
            const char* const path = std::getenv(name);
            if (path == nullptr) continue;
            folder_ = Descriptor(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (folder_.valid()) break;
        }
        const SteadyClock clock;
        const Time end = clock.now() + kPatience;
        while (folder_.valid() && ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && clock.now() < end)
            std::this_thread::sleep_for(kPause);
    }

  private:
    static constexpr Nanoseconds kPatience = std::chrono::seconds(10), kPause = std::chrono::milliseconds(2);
    Descriptor folder_;
};

}  // namespace heddle
