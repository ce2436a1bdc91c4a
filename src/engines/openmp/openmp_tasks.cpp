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
        if (omp_get_thread_num() == 0)
            inside->lead(omp_get_num_threads());
        else
            inside->join();
#pragma omp barrier
        inside->part();
    }
}

void make_answer(Work& work) {
    Work* const to = &work;
#pragma omp task firstprivate(to)
    to->answer();
}

void make_service_call(Work& work) {
    Work* const to = &work;
#pragma omp task firstprivate(to)
    to->call_services();
}

void make_park(Work& work) {
    Work* const to = &work;
#pragma omp task firstprivate(to)
    to->park();
}

int level() {
    return omp_get_level();
}

void without_teams(const std::function<void()>& function) {
    const int before = omp_get_max_active_levels();
    omp_set_max_active_levels(0);
    function();
    omp_set_max_active_levels(before);
}

int cpus() {
    return omp_get_num_procs();
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

namespace {

void resize(int width) {
    omp_set_dynamic(0);
    omp_set_num_threads(width);
}

/// As libgomp counts them for its barriers: when it is loaded, which is with this at the latest.
const int cpus_when_loaded = keeps_threads() ? 0 : omp_get_num_procs();

/// With so many threads the first region of a kernel opens. While libgomp has no more threads than CPUs, its
/// barriers spin for milliseconds, on the CPU on which a thread that they wait for may have to begin: one
/// more, which ends with that region, and they sleep.
int first_team(int width) {
    return !keeps_threads() && width > 1 && width >= cpus_when_loaded ? width + 1 : width;
}

/// Both runtimes keep the threads of a region for the next one of the thread that opened it: a region before
/// the kernel makes them, and has them bound.
void run_kernel(KernelCrew& crew, int width, void (*function)(void*), void* argument) {
    KernelCrew* const all = &crew;
    resize(width);
    if (&kmp_set_blocktime != nullptr) kmp_set_blocktime(0);
#pragma omp parallel num_threads(first_team(width)) firstprivate(all, width)
    if (omp_get_thread_num() < width) all->join();
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
