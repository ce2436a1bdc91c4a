// ThreadPool: the threads of a CPU device of PoCL's, found by a native kernel on a sub-device of each one
// alone, and bound from then on. Any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "heddle/cpu_set.hpp"
#include "opencl/next.hpp"
#include "opencl/thread_places.hpp"

namespace heddle::opencl {

class ThreadPool {
  public:
    explicit ThreadPool(cl_device_id device);
    /// Of a device, for good; null where its driver's threads cannot be found.
    [[nodiscard]] static std::shared_ptr<ThreadPool> of(cl_device_id device);

    [[nodiscard]] cl_device_id device() const noexcept { return device_; }
    /// As many as threads, of those that the process may use.
    [[nodiscard]] const CpuSet& cpus() const noexcept { return cpus_; }

    /// The driver's device of a range of threads, kept for good. Null where the driver refuses.
    [[nodiscard]] cl_device_id device_of(const ThreadRange& range);
    /// Threads for a set of CPUs, bound there.
    [[nodiscard]] std::optional<ThreadRange> claim(const CpuSet& cpus);
    void release(const ThreadRange& range, const CpuSet& cpus);
    /// So many were, so far.
    [[nodiscard]] uint64_t released() const;
    /// Until more were; false: it is that late.
    [[nodiscard]] bool wait_for_release(uint64_t released, std::chrono::steady_clock::time_point latest);
    /// The threads of a range may use no others of their CPUs for now.
    void confine(const ThreadRange& range, const CpuSet& usable);

  private:
    /// Waits for a command of the driver's, whose threads may be in callbacks that confine others: without
    /// the lock.
    void find_thread(int index);
    /// Those that were found. With the lock.
    void bind(const ThreadRange& range, const CpuSet& usable);

    const cl_device_id device_;
    const CpuSet cpus_;
    mutable std::mutex mutex_;
    ThreadPlaces places_;
    uint64_t released_ = 0;
    std::condition_variable was_released_;
    std::mutex finding_;                       // one at a time; before mutex_
    std::vector<std::atomic<pid_t>> threads_;  // 0: not found yet
    struct Known {
        ThreadRange range;
        cl_device_id device;
    };
    std::vector<Known> devices_;
    const bool synthetic_;  // nothing is bound
};

/// The CPUs that this process may use, when it was first asked.
[[nodiscard]] const CpuSet& process_cpus();

}  // namespace heddle::opencl
