// OnCpus: a test whose figures are for a machine of so many CPUs runs on that many, and so do the arbiters
// and programs that it starts.
//
// Binds the calling thread while it lives; what is started meanwhile inherits it.
#pragma once

#include <sched.h>

namespace heddle::test {

class OnCpus {
  public:
    explicit OnCpus(int count) {
        ::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t these;
        CPU_ZERO(&these);
        for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&these) < count; ++cpu)
            if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &these);
        enough_ = CPU_COUNT(&these) == count && ::sched_setaffinity(0, sizeof these, &these) == 0;
    }
    ~OnCpus() { ::sched_setaffinity(0, sizeof before_, &before_); }
    OnCpus(const OnCpus&) = delete;
    OnCpus& operator=(const OnCpus&) = delete;

    /// False: this machine has fewer.
    [[nodiscard]] bool enough() const { return enough_; }

  private:
    cpu_set_t before_;
    bool enough_ = false;
};

}  // namespace heddle::test
