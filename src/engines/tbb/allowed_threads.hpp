// AllowedThreads: while one lives, oneTBB may have so many threads of its own, beside those of others.
//
// oneTBB counts the CPUs of the machine it runs on, which may have fewer than the one that is described, and
// takes the least of all limits that are set. So there is one for all engines and kernels of the process, the
// sum of what they need. There is none where oneTBB allows as many anyway. A limit of the program's own
// holds. When the process ends the limit stays as it is. Any thread.
#pragma once

#include <cstddef>

namespace heddle {

class AllowedThreads {
  public:
    explicit AllowedThreads(size_t workers);
    ~AllowedThreads();
    AllowedThreads(const AllowedThreads&) = delete;
    AllowedThreads& operator=(const AllowedThreads&) = delete;

  private:
    const size_t workers_;
};

}  // namespace heddle
