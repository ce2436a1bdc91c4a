// What is said in OpenMP's own words: the parallel region and the tasks in it. All pragmas are in
// openmp_tasks.cpp, which is compiled once for each OpenMP runtime; the rest of the engine is plain C++.
//
// Tasks are made by the thread that feeds the region alone, so that all are children of one task, and ordered
// by the depend clause.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tasks/kernel_crew.hpp"

namespace heddle {
struct Task;
}

namespace heddle::openmp {

/// What happens in the region. Called on its threads.
class Work {
  public:
    /// On the first thread: makes tasks until there are to be no more. `threads`: as many as the region has.
    virtual void feed(int threads) noexcept = 0;
    virtual void run(Task& task) noexcept = 0;
    /// The task could run. It has been when fulfil() is called with the event.
    virtual void announce(Task& task, uintptr_t event) noexcept = 0;
    virtual void run_announced() noexcept = 0;
    virtual void park() noexcept = 0;
    virtual void nap() noexcept = 0;
    /// On each thread, after all tasks.
    virtual void depart() noexcept = 0;

  protected:
    ~Work() = default;
};

/// Bytes by whose addresses tasks are ordered. A reader's is in `in` alone, a writer's in `inout` alone.
struct Dependences {
    const std::byte* const* in;
    size_t ins;
    const std::byte* const* inout;
    size_t inouts;
};

/// Opens the region with so many threads, or fewer where the runtime has no more, and closes it.
void region(Work& work, int threads);

/// In feed(). work.run(task), or with `announced` work.announce(), after the tasks before it.
void make(Work& work, Task& task, const Dependences& dependences, bool announced);
void make_call(Work& work);
void make_park(Work& work);
void make_nap(Work& work);
void fulfil(uintptr_t event) noexcept;

/// "libgomp" or "libomp", whichever the plug-in found in this process, and the standard that it was built
/// for.
[[nodiscard]] const char* runtime_name();
[[nodiscard]] int standard();
/// The threads of a region outlive the thread that opened it.
[[nodiscard]] bool keeps_threads();
/// Tasks that could run and are not yet running, at most, before this runtime has their maker run them.
[[nodiscard]] int room_for(int threads);

/// How it runs kernels (tasks/kernel_crew.hpp).
extern const KernelRunner kKernels;

}  // namespace heddle::openmp
