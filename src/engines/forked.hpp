// LibraryThreads: whether this process was forked from one in which a library had begun that has threads: a
// child gets none of them, and the library waits for them for ever.
//
// Each plug-in has its own, for the library behind it. Any thread.
#pragma once

#include <atomic>
#include <string>

#include "base/forks.hpp"

namespace heddle {

class LibraryThreads {
  public:
    /// The library has begun, here or in a process that this one was forked from.
    static void begin() noexcept {
        unsigned none = 0;
        begun_.compare_exchange_strong(none, forks() + 1);
    }
    /// "" where the library may be used, else why not, and what to do.
    [[nodiscard]] static std::string problem(const char* library) {
        const unsigned begun = begun_;
        if (begun == 0 || begun == forks() + 1) return "";
        return std::string("this process was forked from one that had used ") + library +
               ", and has none of its threads: use the engine native or openmp here, or call exec()";
    }

  private:
    inline static std::atomic<unsigned> begun_{0};  // by so many forks and one; 0: not yet
};

}  // namespace heddle
