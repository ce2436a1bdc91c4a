// Offload: kernels of one engine, each confined to a set of CPUs (seed 000 section 2.1.1).
//
//     heddle::Offload openmp("openmp");
//     heddle::Kernel kernel = openmp.spawn([&] { library_that_uses_openmp(a, b); }, {0, 1});
//     ... kernel.wait();
//
// A kernel is a function written for the engine's runtime: with `openmp`, `openmp-libomp` and `tbb` its
// parallel regions, loops and arenas have as many threads as it has CPUs, and these are bound to them. Of
// `native`, and of engines that bring nothing of their own, a kernel is a task: what it inserts into a
// Sequence of kernel_runtime() runs on its CPUs too. Any kernel may block (heddle/pause.hpp), signal, and
// spawn others.
//
// spawn() does not wait. Kernels are components of the process's sharing (heddle/cores.hpp), which own
// nothing: one starts when it has at least one of its CPUs, with as many as can be had within half a
// millisecond, and lends them again when it ends, and while it blocks outside of parallel regions. A CPU that
// is taken back is left at once, and the threads that were there go on on the others; the last one a kernel
// keeps until it ends or has another. Kernels of one engine start in the order of spawn() as far as their
// CPUs allow it; one that is a task starts when those that have started have nothing to run, or where none
// has started for 100 ms.
//
// A kernel that is a task has a stack of 64 KiB, or of HEDDLE_STACK_BYTES (a variable of the environment, a
// power of two), and one that needs more ends the process; others have a thread's.
//
// Threads that a kernel makes by itself are bound where the one that made them was then; those that libomp
// makes beyond one for each CPU are not bound at all. Any thread may call; construction and destruction are
// for one. After fork(2) a child must not use its parent's; nothing outlives the process.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "heddle/cpu_set.hpp"
#include "heddle/export.hpp"
#include "heddle/pause.hpp"

namespace heddle {

class Runtime;

namespace detail {
struct KernelState;
class OffloadState;
}  // namespace detail

/// A kernel that was spawned. Copies are the same kernel; it goes on without any.
class HEDDLE_API Kernel {
  public:
    explicit Kernel(std::shared_ptr<detail::KernelState> state) : state_(std::move(state)) {}

    [[nodiscard]] bool done() const;
    /// Until it has ended. In a task, or in another kernel, that one is paused or lends its CPUs meanwhile.
    /// Rethrows what the kernel threw, each time. Throws kInvalidArgument in the kernel itself.
    void wait() const;

  private:
    std::shared_ptr<detail::KernelState> state_;
};

class HEDDLE_API Offload {
  public:
    /// What is called when a kernel has ended, on its thread, before waits for it return; with what it threw,
    /// or null. Must not throw.
    using Ended = std::function<void(std::exception_ptr)>;

    /// Starts the engine for kernels on `cpus`; empty: on all that the process may use. Throws
    /// kInvalidArgument for an unknown engine or CPUs that the process may not use, kUnavailable where a
    /// library is missing.
    explicit Offload(std::string_view engine = "native", const CpuSet& cpus = {});
    /// Waits for all kernels. Not in one of them.
    ~Offload();
    Offload(const Offload&) = delete;
    Offload& operator=(const Offload&) = delete;

    /// A kernel on all CPUs of this, also on those that it has later. Throws kLimit where there can be no
    /// thread, std::bad_alloc.
    Kernel spawn(std::function<void()> function, Ended ended = {});
    /// On these alone. Throws kInvalidArgument for none, or one that is not of this.
    Kernel spawn(std::function<void()> function, const CpuSet& cpus, Ended ended = {});

    /// Other CPUs from now on; kernels under way leave those that are gone. A kernel on CPUs all of which are
    /// gone has all the new ones. Throws as the constructor, and for an empty set.
    void set_cpus(const CpuSet& cpus);
    /// Until all kernels that were spawned so far have ended. What they threw is for Kernel::wait(). Throws
    /// kInvalidArgument in one of them.
    void wait();
    /// Until no kernel is left, none of those that kernels spawn meanwhile either. Throws as wait() does.
    void drain();
    /// No kernel is left.
    [[nodiscard]] bool idle() const;

    /// Called again and again by threads of this that have nothing else to do: see heddle/pause.hpp. What is
    /// left goes with this.
    void register_polling_service(const std::string& name, PollingService service, void* data);
    void unregister_polling_service(PollingService service, void* data);

    [[nodiscard]] std::string engine() const;
    [[nodiscard]] CpuSet cpus() const;

  private:
    std::unique_ptr<detail::OffloadState> state_;
};

/// The CPUs that the kernel which the calling thread takes part in has now; outside of kernels none. An
/// OpenMP region that the thread opens next has as many threads: to be asked between regions by kernels that
/// want to follow changes.
[[nodiscard]] HEDDLE_API CpuSet kernel_cpus();
/// In a kernel that is a task: the runtime whose tasks run on its CPUs. Throws kInvalidArgument elsewhere.
/// Its threads outside of tasks do not help when they wait.
[[nodiscard]] HEDDLE_API Runtime& kernel_runtime();

}  // namespace heddle
