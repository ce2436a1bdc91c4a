#include "engines/openmp/openmp_tasks.hpp"

#include <omp.h>

// libomp's, also behind the symbols of libgomp that it has; null in libgomp.
extern "C" __attribute__((weak)) void kmp_set_blocktime(int milliseconds);

namespace heddle::openmp {

void region(Work& work, int threads) {
    omp_set_dynamic(0);
    // libomp's threads without a task spin for 200 ms otherwise. Those of libgomp do for some 20 us where
    // there are more of them than CPUs, and for 3 ms elsewhere.
    if (&kmp_set_blocktime != nullptr) kmp_set_blocktime(0);
    Work* const inside = &work;
#pragma omp parallel num_threads(threads) firstprivate(inside)
    {
#pragma omp master
        inside->feed(omp_get_num_threads());
#pragma omp barrier
        inside->depart();
    }
}

void make(Work& work, Task& task, const Dependences& dependences, bool announced) {
    Work* const to = &work;
    Task* const it = &task;
    const std::byte* const* in = dependences.in;
    const std::byte* const* inout = dependences.inout;
    const size_t ins = dependences.ins, inouts = dependences.inouts;
// clang-format off
#define HEDDLE_DEPENDENCES                             \
    depend(iterator(size_t i = 0 : ins), in : *in[i])  \
    depend(iterator(size_t i = 0 : inouts), inout : *inout[i])
    // clang-format on
    if (announced) {
        omp_event_handle_t event{};
#pragma omp task firstprivate(to, it) detach(event) HEDDLE_DEPENDENCES
        to->announce(*it, static_cast<uintptr_t>(event));
    } else if (ins == 0 && inouts == 0) {
#pragma omp task firstprivate(to, it)
        to->run(*it);
    } else {
#pragma omp task firstprivate(to, it) HEDDLE_DEPENDENCES
        to->run(*it);
    }
#undef HEDDLE_DEPENDENCES
}

void make_call(Work& work) {
    Work* const to = &work;
#pragma omp task firstprivate(to)
    to->run_announced();
}

void make_park(Work& work) {
    Work* const to = &work;
#pragma omp task firstprivate(to)
    to->park();
}

void make_nap(Work& work) {
    Work* const to = &work;
#pragma omp task firstprivate(to)
    to->nap();
}

void fulfil(uintptr_t event) noexcept {
    omp_fulfill_event(static_cast<omp_event_handle_t>(event));
}

const char* runtime_name() {
    return &kmp_set_blocktime != nullptr ? "libomp" : "libgomp";
}

int standard() {
    return _OPENMP;
}

bool keeps_threads() {
    return &kmp_set_blocktime != nullptr;
}

int room_for(int threads) {
    // libomp: a queue of 256 for each thread. libgomp: 64 for each thread, in one queue.
    return &kmp_set_blocktime != nullptr ? 256 : 64 * threads;
}

namespace {

void resize(int width) {
    omp_set_dynamic(0);
    omp_set_num_threads(width);
}

/// Both runtimes keep the threads of a region for the next one of the thread that opened it: a region before
/// the kernel makes them, and has them bound.
void run_kernel(KernelCrew& crew, int width, void (*function)(void*), void* argument) {
    KernelCrew* const all = &crew;
    resize(width);
    if (&kmp_set_blocktime != nullptr) kmp_set_blocktime(0);
#pragma omp parallel num_threads(width) firstprivate(all)
    all->join();
    function(argument);
    if (&kmp_set_blocktime == nullptr) {
        // They would spin for some milliseconds, on CPUs that are others' by then. Each leaves as it ends.
        (void)omp_pause_resource(omp_pause_soft, omp_get_initial_device());
        return;
    }
#pragma omp parallel num_threads(width) firstprivate(all)
    all->leave();
}

/// Of all regions that the calling thread is in, one in the other.
int others_at_work(int) {
    int threads = 1;
    for (int level = 1; level <= omp_get_level(); ++level) threads *= omp_get_team_size(level);
    return threads - 1;
}

}  // namespace

extern const KernelRunner kKernels;
const KernelRunner kKernels{run_kernel, resize, others_at_work, &kmp_set_blocktime != nullptr};

}  // namespace heddle::openmp
