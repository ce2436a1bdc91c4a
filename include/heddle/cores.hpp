// Component: a runtime or library that shares the CPUs of its process with the others (dynamic resource
// sharing, seed 000 section 2.2.1).
//
// What a component owns it may lend, and always wins back; what others lend it may borrow, and must return
// when it is told to. docs/LEDGER.md has the rules as tables. Any thread may call any function at any time;
// only construction, moving and destruction are for one thread. After fork(2) the child must not use the
// parent's components: it has no threads behind them. It may have its own, which share its CPUs as those of
// any other process do. Nothing outlives the process.
//
// The components of a process lend to each other first. Where an arbiter listens when the first one attaches
// (heddled; not with HEDDLE_ARBITER=off, nor under `heddle run`, which speaks for the process), what they all
// leave idle goes to other programs, and what they all ask for comes from those, as far as the arbiter's
// policy gives it. A component then may use of its own CPUs what the process holds. CPUs that come later are
// announced by the callbacks. One that another program gets is announced by disable_cpu, whoever owns it: the
// component leaves it, and says so by return_cpu, within 10 ms, or the arbiter binds the process's threads
// to the CPUs that are left to it. A request for CPUs that other programs have answers kNoted. CPUs that
// nobody owns are for all to borrow. When the arbiter dies, the process keeps what it holds.
//
// Callbacks tell what changed. They run outside of all locks, in the order in which it was decided, and never
// two at a time for one component; usually in the thread whose call caused them, which may belong to another
// component. A callback may call any component, its own included, and may destroy its own: what such a call
// causes for its component is announced after the callback has returned. When a call returns, its callbacks
// have run, unless another thread is in a callback of the same component: that thread then runs them next.
// Changes that undo each other before they could be announced are not announced. An exception out of a
// callback reaches the caller of the call that ran it, after the remaining callbacks have run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "heddle/cpu_set.hpp"
#include "heddle/export.hpp"

namespace heddle {

class Exchange;

/// What a call came to. None is an error of the program's: all are to be expected while others run.
enum class Outcome : uint8_t {
    kSuccess,     ///< done
    kNoted,       ///< under way: somebody has still to leave, or a request is waiting; a callback follows
    kNoUpdate,    ///< there was nothing to do, or nothing to be had
    kDisabled,    ///< sharing is disabled for this component; the call was ignored
    kPermission,  ///< not this component's to decide, no such CPU, or a negative count
    kTooManyRequests,  ///< too many requests wait for these CPUs already
};

/// "success", "noted", ...
[[nodiscard]] HEDDLE_API std::string_view to_string(Outcome outcome) noexcept;

/// What a component was given to do so far, and what of it has ended, in units of its own (a runtime: tasks).
struct WorkCounts {
    uint64_t inserted = 0, ended = 0;
    friend bool operator==(const WorkCounts&, const WorkCounts&) = default;
};

class HEDDLE_API Component {
  public:
    /// Attaches to this process's sharing as the owner of `owned`, which it may use from now on, as far as
    /// the process holds them. An empty set makes a component that only borrows. Throws kPermission where a
    /// CPU has an owner already or is not in the machine, kLimit where there are too many components, and for
    /// the first one kBadInput or kInvalidArgument where HEDDLE_* variables have values that cannot be:
    /// nothing is attached then, and the next one tries again.
    Component(std::string_view name, const CpuSet& owned);
    /// The same in an exchange other than the process's own, which must outlive the component.
    Component(Exchange& exchange, std::string_view name, const CpuSet& owned);
    /// Detaches. Afterwards no callback of it runs: one that is running in another thread is waited for,
    /// unless the destructor itself was called from a callback.
    ~Component();
    Component(Component&& other) noexcept;
    Component& operator=(Component&& other) noexcept;
    Component(const Component&) = delete;
    Component& operator=(const Component&) = delete;

    /// Detaches before its time: what it borrowed is free at once, what it owned is nobody's, its requests
    /// are dropped. kPermission where it is detached already, as from every other call from then on.
    Outcome detach();

    /// Gives CPUs away for the time being: all it may use, one, `count` of them (borrowed and far ones
    /// first), or those in a set. Lending what it does not have is a success without an effect. Lending also
    /// withdraws its requests for these CPUs.
    Outcome lend();
    Outcome lend_cpu(int cpu);
    Outcome lend_cpus(int count);
    Outcome lend_cpu_mask(const CpuSet& cpus);

    /// Takes its own CPUs back. kNoted: the component may start at once, while whoever is there was told to
    /// leave; check_cpu() tells when it has. Where another program has the CPU it is asked for, and
    /// enable_cpu tells when to start.
    Outcome reclaim();
    Outcome reclaim_cpu(int cpu);
    Outcome reclaim_cpus(int count);
    Outcome reclaim_cpu_mask(const CpuSet& cpus);

    /// Takes its own CPUs back and lent ones of others, near ones first. What cannot be had now is
    /// remembered: kNoted, and enable_cpu is called later. acquire_cpus(0) drops all its requests.
    Outcome acquire();
    Outcome acquire_cpu(int cpu);
    Outcome acquire_cpus(int count);
    /// The same with `count` out of `among`.
    Outcome acquire_cpus(int count, const CpuSet& among);
    Outcome acquire_cpu_mask(const CpuSet& cpus);

    /// Takes only what lies idle, and leaves no request. Costs next to nothing where nothing does.
    Outcome borrow();
    Outcome borrow_cpu(int cpu);
    Outcome borrow_cpus(int count);
    Outcome borrow_cpu_mask(const CpuSet& cpus);

    /// Leaves borrowed CPUs whose owner wants them back, and any that other programs get. kNoUpdate where
    /// there are none.
    Outcome return_all();
    Outcome return_cpu(int cpu);
    Outcome return_cpus(int count);
    Outcome return_cpu_mask(const CpuSet& cpus);

    /// Lends what exceeds `max` CPUs, borrowed ones first, and never takes more from then on, its own
    /// included. 0: no limit.
    Outcome set_max_parallelism(int max);
    /// disable: back to exactly what it owns, no requests; every call above answers kDisabled until enable.
    /// Questions and callbacks work as before.
    Outcome enable();
    Outcome disable();

    /// kSuccess: the CPU is this component's alone. kNoted: it may use it, and another has still to leave.
    /// kPermission: not its to use.
    [[nodiscard]] Outcome check_cpu(int cpu) const;
    /// What it may use now; what of that it borrowed included.
    [[nodiscard]] CpuSet usable() const;
    /// What it has to return: for programs that would rather ask than be called.
    [[nodiscard]] CpuSet to_return() const;
    /// Of what it may use, what other components of this process wait for: it would be theirs if lent.
    [[nodiscard]] CpuSet awaited() const;

    /// Sets a callback; an empty function removes it. The old one may still be called for what was decided
    /// before. kPermission once detached.
    /// Whichever are set are called: first disable_cpu and enable_cpu, CPU by CPU as decided, then
    /// add_active_mask with what was added and is still usable, then set_active_mask and set_num_threads with
    /// all that is usable. What a component owns when it attaches is announced to nobody.
    Outcome on_enable_cpu(std::function<void(int cpu)> callback);
    Outcome on_disable_cpu(std::function<void(int cpu)> callback);
    Outcome on_set_num_threads(std::function<void(int count)> callback);
    Outcome on_set_active_mask(std::function<void(const CpuSet& cpus)> callback);
    Outcome on_add_active_mask(std::function<void(const CpuSet& cpus)> callback);
    /// The callback that is set, as a copy: to call it from one that takes its place, say, or to set it
    /// again. Empty where none is, and once detached.
    [[nodiscard]] std::function<void(int cpu)> enable_cpu_callback() const;
    [[nodiscard]] std::function<void(int cpu)> disable_cpu_callback() const;
    [[nodiscard]] std::function<void(int count)> set_num_threads_callback() const;
    [[nodiscard]] std::function<void(const CpuSet& cpus)> set_active_mask_callback() const;
    [[nodiscard]] std::function<void(const CpuSet& cpus)> add_active_mask_callback() const;
    /// What the component has done and has to do, for `heddle status` and `heddle top`: asked only while
    /// somebody looks, by a thread of heddle's, one at a time. It must neither block nor attach or detach
    /// components. An empty function: nothing to tell any more. kPermission once detached; afterwards it is
    /// not called.
    Outcome on_count(std::function<WorkCounts()> count);

  private:
    Exchange* exchange_ = nullptr;
    uint32_t member_ = 0;
};

}  // namespace heddle
