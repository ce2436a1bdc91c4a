// What is said in OpenMP's own words: the parallel region and the tasks in it. All pragmas are in
// openmp_tasks.cpp, which is compiled once for each OpenMP runtime; the rest of the engine is plain C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tasks/kernel_crew.hpp"

namespace heddle::openmp {

/// What happens in the region. Called on its threads.
class Work {
  public:
    /// On the first thread: returns when there is to be nothing more. `threads`: as many as the region has.
    virtual void lead(int threads) noexcept = 0;
    /// On each other thread, before all tasks, and on each after them.
    virtual void join() noexcept = 0;
    virtual void part() noexcept = 0;
    virtual void answer() noexcept = 0;
    virtual void call_services() noexcept = 0;
    /// Returns when lead() has.
    virtual void park() noexcept = 0;

  protected:
    ~Work() = default;
};

/// Opens the region with so many threads, or fewer where the runtime has no more, and closes it.
void region(Work& work, int threads);

// On a thread of the region: makes a task that calls a function of Work's.
void make_answer(Work& work);
void make_service_call(Work& work);
void make_park(Work& work);

/// So many regions is the calling thread in, one in the other.
[[nodiscard]] int level();
/// Calls `function` where a region that it opens has one thread, as it has inside the other region.
void without_teams(const std::function<void()>& function);
/// CPUs that the runtime counts with. libomp's are those of the thread that first asks it for something, and
/// it puts all threads of the process that open regions there.
[[nodiscard]] int cpus();

/// "libgomp" or "libomp", whichever the plug-in found in this process, and the standard that it was built
/// for.
[[nodiscard]] const char* runtime_name();
[[nodiscard]] int standard();
/// The threads of a region outlive the thread that opened it, and sleep at once when they have no task.
[[nodiscard]] bool keeps_threads();

/// How it runs kernels (tasks/kernel_crew.hpp).
extern const KernelRunner kKernels;

}  // namespace heddle::openmp
