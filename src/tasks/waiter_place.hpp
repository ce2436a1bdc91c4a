// WaiterPlace: where a thread of the program's runs while it helps: on the engine's CPUs, and off those of
// its workers, which are bound. Left to the system it may share a CPU with one for long, while another lies
// idle.
//
// On the stack of who waits; gives the thread back the CPUs that it had, or would have had but for a fence
// that has ended meanwhile.
#pragma once

#include "base/clock.hpp"
#include "cores/worker_pool.hpp"

namespace heddle {

class WaiterPlace {
  public:
    /// `bind` false: does nothing.
    WaiterPlace(const CpuSet& cpus, bool bind);
    ~WaiterPlace();
    WaiterPlace(const WaiterPlace&) = delete;
    WaiterPlace& operator=(const WaiterPlace&) = delete;

    /// Before the thread helps: looks where the workers are, at most once a millisecond.
    void look(const WorkerPool& pool);

  private:
    void move_to(const CpuSet& cpus);

    CpuSet before_, allowed_, now_;  // now_ is empty where nothing is to be done
    const CpuSet* const before_fence_;
    Time next_look_{};
};

}  // namespace heddle
