// ForkWatch: whether this process was forked from one in which a library had begun that has threads: a child
// gets none of them, and the library waits for them for ever.
//
// Of whoever compiles it in: a plug-in has its own, for the library behind it. Any thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <string>

namespace heddle {

class ForkWatch {
  public:
    /// From now on, for good.
    static void begin() noexcept {
        static const int installed = ::pthread_atfork(nullptr, nullptr, [] { is_child_ = true; });
        (void)installed;
    }
    /// "" where it was not, else why the library cannot be used, and what to do.
    [[nodiscard]] static std::string problem(const char* library) {
        if (!is_child_) return "";
        return std::string("this process was forked from one that had used ") + library +
               ", and has none of its threads: use the engine native or openmp here, or call exec()";
    }

  private:
    inline static std::atomic<bool> is_child_{false};
};

}  // namespace heddle
