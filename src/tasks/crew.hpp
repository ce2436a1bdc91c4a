// Crew: the threads of a kernel of a foreign runtime, and the CPUs that they are bound to. Kernels on the
// same CPUs may have one after the other.
//
// A component of the process's sharing for as long as kernels run: it asks for the kernel's CPUs, starts
// with those that it gets, and moves all its threads whenever that changes. The kernel's own thread begins
// on a CPU of its own and may run on all, as what it creates inherits that. The others, which the runtime
// wakes, are bound to a CPU each as long as there are enough: a virtual machine's system puts who is woken
// behind who wakes, since it takes an idle CPU that the host has put to sleep for one that is not to be had.
//
// Where the runtime cannot use more CPUs than it began with, the rest is for others, until the kernel asks
// what it has (resize()).
//
// A thread is known by its id, from join() until leave() or its own end. One lock for all crews: it is taken
// when a kernel begins or ends and when CPUs come and go.
#pragma once

#include <sched.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cores/exchange.hpp"
#include "heddle/cores.hpp"
#include "tasks/engine.hpp"

namespace heddle {

namespace detail {
struct KernelState;
}
struct WaitedFor;

/// What a crew tells those who decide how many kernels run at once.
class CrewWatcher {
  public:
    /// The kernel waits for something else than CPUs, or does not any more. Throws kLimit where no kernel
    /// could run meanwhile.
    virtual void kernel_blocks(bool blocks) = 0;

  protected:
    ~CrewWatcher() = default;
};

struct CrewOptions {
    Exchange& exchange;
    std::string name;
    bool bind;
    CpuSet makers_affinity;
    const KernelRunner& runner;
    CrewWatcher& watcher;
};

class Crew final : public KernelCrew {
  public:
    Crew(const CrewOptions& options, CpuSet wanted);
    /// end().
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    /// Waits for CPUs, at least one. Throws as Component's constructor.
    void gather();
    /// Lends what it has. No thread takes part any more.
    void end() noexcept;
    /// Other CPUs from now on, not none. Nothing where it has ended.
    void confine(const CpuSet& wanted);
    /// With how many threads a kernel is to begin now that there are CPUs: as KernelRunner::run.
    [[nodiscard]] int settle();
    [[nodiscard]] CpuSet cpus() const;
    [[nodiscard]] const CpuSet& makers_affinity() const noexcept { return options_.makers_affinity; }
    /// The kernel that it runs now, for threads of that kernel to ask, and what others know of who waits for
    /// it. Before it runs.
    void begin(const detail::KernelState& kernel, WaitedFor& waited_for) noexcept {
        kernel_ = &kernel;
        waited_for_ = &waited_for;
    }
    [[nodiscard]] const detail::KernelState* kernel() const noexcept { return kernel_; }
    [[nodiscard]] WaitedFor* waited_for() const noexcept { return waited_for_; }

    void join() noexcept override;
    void join_when_there_is_room() noexcept override;
    void close() noexcept override;
    void leave() noexcept override;

    /// The crew that the calling thread takes part in, or null.
    [[nodiscard]] static Crew* here() noexcept;
    /// On a thread of it: calls `sleep`, which sleeps, and lends meanwhile the CPUs that nobody else needs.
    void without_cpus(const std::function<void()>& sleep);
    /// What the thread opens next has as many threads as there are CPUs, of which it may have all again.
    void resize();

  private:
    using Lock = std::unique_lock<std::mutex>;
    /// Of one thread, which has it for life.
    struct Membership {
        ~Membership();
        Crew* crew = nullptr;
        Crew* left = nullptr;  ///< where it still is bound
        pid_t thread = 0;
        int cpu = -1;                       ///< for it alone; -1: all of the crew's
        bool kernels_own = false;           ///< may run on all of them, but begins there
        std::unique_ptr<cpu_set_t> before;  ///< where it was; null: nobody knows, or it is the runtime's
    };
    [[nodiscard]] static Membership& membership() noexcept;

    void changed() noexcept;
    [[nodiscard]] bool adjust() noexcept;
    [[nodiscard]] bool request() noexcept;
    bool ask() noexcept;
    void wait_for_some(Lock& lock);
    void wait_at_door(Membership& self, Lock& lock, const std::function<bool()>& may_enter) noexcept;
    [[nodiscard]] CpuSet part_of(const CpuSet& usable) const;
    void bind_all() noexcept;
    void bind(Membership& member) noexcept;
    void bind(pid_t thread, const CpuSet& cpus) const noexcept;
    void take_place_again() noexcept;
    [[nodiscard]] int cpu_for(const Membership& thread) const noexcept;
    [[nodiscard]] CpuSet place(int cpu) const { return cpu < 0 ? held_ : CpuSet{cpu}; }
    static void arrive(Membership& self) noexcept;
    void bind_back(const Membership& member) const noexcept;
    void add(Membership& self) noexcept;
    [[nodiscard]] int at_work() const noexcept;
    [[nodiscard]] int useful() const noexcept;
    void remove(Membership& member) noexcept;
    void forget(Membership& member) noexcept;

    const CrewOptions options_;
    // Written between kernels.
    const detail::KernelState* kernel_ = nullptr;
    WaitedFor* waited_for_ = nullptr;
    // Under the lock of all crews.
    CpuSet wanted_;
    CpuSet held_;  ///< where its threads are bound; empty before it begins, or while it lends all
    int most_ = CpuSet::kMaxCpus;  ///< CPUs that it can use
    bool closed_ = false;
    std::vector<Membership*> members_;
    std::vector<Membership*> left_;     ///< the runtime's threads that may come back
    std::vector<Membership*> at_door_;  ///< in join_when_there_is_room()
    int blocked_ = 0;                   ///< threads in without_cpus()
    int busy_ = 0;  ///< those that do not, where the runtime does not widen and some sleep
    std::condition_variable changed_;
    /// Made before the first call that needs it, and gone before the rest.
    std::optional<Component> component_;
};

/// Calls `sleep`; in a thread of a kernel as Crew::without_cpus().
void sleep_in_kernel(const std::function<void()>& sleep);

}  // namespace heddle
