// KernelCrew, KernelRunner: what an engine says and does where kernels of its own runtime are concerned
// (heddle/offload.hpp). For plug-ins: all virtual.
#pragma once

namespace heddle {

/// The threads that take part in one kernel. Any thread, about itself.
class KernelCrew {
  public:
    /// From now on the calling thread takes part: it is bound to the kernel's CPUs. Nothing where it does
    /// already, or in another kernel.
    virtual void join() noexcept = 0;
    /// The same, as soon as the kernel has a CPU for one more thread, or after 100 ms, or once it is closed.
    virtual void join_when_there_is_room() noexcept = 0;
    /// Who waits for room need not wait any longer: the kernel has ended.
    virtual void close() noexcept = 0;
    /// It does not any more, and is bound as before.
    virtual void leave() noexcept = 0;

  protected:
    ~KernelCrew() = default;
};

/// How an engine runs kernels that use its runtime's own words.
struct KernelRunner {
    /// Calls function(argument) on this thread, with `width` threads for what it does in parallel: as many as
    /// it has CPUs, or where it widens() as it may come to have. Each thread joins before it takes part, and
    /// has left when this returns.
    void (*run)(KernelCrew& crew, int width, void (*function)(void*), void* argument);
    /// From now on `width` threads for what the calling thread does in parallel. Null: it widens, which is to
    /// say that its threads join when there is room for them.
    void (*resize)(int width);
    [[nodiscard]] bool widens() const { return resize == nullptr; }
    /// Threads that may be at work for the kernel of the calling thread, besides that.
    int (*others)(int joined);
    /// Threads that have run kernels are to be kept for the next, for as long as the process lives.
    bool keeps_threads;
};

}  // namespace heddle
