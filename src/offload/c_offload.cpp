// The C interface of heddle/offload.h.
#include "heddle/offload.h"

#include <functional>
#include <memory>
#include <utility>

#include "heddle/offload.hpp"
#include "tasks/c_interface.hpp"

namespace {

using namespace heddle;
using c::guarded;
using c::made;
using c::object_of;
using c::refuse;
using c::refuse_handle;

Offload& offload_of(heddle_offload_t* offload) {
    return object_of<Offload>(offload, "offload");
}

CpuSet cpus_of(const cpu_set_t* cpus) {
    if (cpus == nullptr) return {};
    CpuSet set = CpuSet::from_native(cpus, sizeof *cpus);
    if (set.empty()) refuse("the set of CPUs is empty");
    return set;
}

Kernel spawn(heddle_offload_t* offload, heddle_kernel_function_t function, void* argument,
             const cpu_set_t* cpus, Offload::Ended ended) {
    Offload& on = offload_of(offload);
    if (function == nullptr) refuse("a kernel needs a function to run");
    const auto body = [function, argument] { function(argument); };
    return cpus == nullptr ? on.spawn(body, std::move(ended))
                           : on.spawn(body, cpus_of(cpus), std::move(ended));
}

}  // namespace

heddle_offload_t* heddle_offload_start(const char* engine, const cpu_set_t* cpus) {
    return made<heddle_offload_t>(
        [&] { return std::make_unique<Offload>(engine == nullptr ? "native" : engine, cpus_of(cpus)); });
}

heddle_task_ret_t heddle_offload_stop(heddle_offload_t* offload) {
    return guarded([&] {
        offload_of(offload).drain();
        (void)taken<Offload>(offload);
    });
}

heddle_task_ret_t heddle_offload_set_cpus(heddle_offload_t* offload, const cpu_set_t* cpus) {
    return guarded([&] { offload_of(offload).set_cpus(cpus_of(cpus)); });
}

heddle_task_ret_t heddle_offload_wait(heddle_offload_t* offload) {
    return guarded([&] { offload_of(offload).wait(); });
}

heddle_task_ret_t heddle_offload_spawn(heddle_offload_t* offload, heddle_kernel_function_t function,
                                       void* argument, const cpu_set_t* cpus, heddle_kernel_function_t ended,
                                       void* data) {
    return guarded([&] {
        Offload::Ended tell;
        if (ended != nullptr) tell = [ended, data](std::exception_ptr) { ended(data); };
        (void)spawn(offload, function, argument, cpus, std::move(tell));
    });
}

heddle_kernel_t* heddle_kernel_spawn(heddle_offload_t* offload, heddle_kernel_function_t function,
                                     void* argument, const cpu_set_t* cpus) {
    return made<heddle_kernel_t>(
        [&] { return std::make_unique<Kernel>(spawn(offload, function, argument, cpus, {})); });
}

heddle_task_ret_t heddle_kernel_wait(heddle_kernel_t* kernel) {
    return guarded([&] {
        object_of<Kernel>(kernel, "kernel").wait();
        (void)taken<Kernel>(kernel);
    });
}

int heddle_kernel_done(heddle_kernel_t* kernel) {
    bool done = false;
    const heddle_task_ret_t found = guarded([&] { done = object_of<Kernel>(kernel, "kernel").done(); });
    return found != HEDDLE_TASK_SUCCESS ? found : done ? 1 : 0;
}

int heddle_kernel_cpus(cpu_set_t* cpus) {
    int count = 0;
    (void)guarded([&] {
        const CpuSet now = kernel_cpus();
        count = now.count();
        if (cpus == nullptr) return;
        CPU_ZERO(cpus);
        for (const int cpu : now)
            if (cpu < CPU_SETSIZE) CPU_SET(cpu, cpus);
    });
    return count;
}
