// LocalServer: how many workers a process has and on which CPUs (seed 002 sections 3 and 4; docs/WORKERS.md).
//
// A pure state machine, (state, event, now) -> actions: no threads, clocks, sockets. Its owner
// (worker_pool.hpp) serialises the calls and carries out the actions in order. Nothing of it outlives the
// process.
//
// Demand is the number of CPUs that could do something: a queue of work for each busy worker, and one more
// while work may be waiting that nobody has (at first the input of the program). So it starts at one, rises
// by one when a new or woken worker finds work, and falls by one when a worker finds none. Workers are
// started one at a time while demand exceeds their number. A worker without work sleeps, keeps its CPU for
// `idle_delay`, and then ends. Before that it looks whether others wait for its CPU, each time after twice as
// long, and ends if they do.
//
// A worker holds its CPU until it says ended(), or moved() to another one. Two never hold the same CPU.
//
// Without memory an event throws std::bad_alloc. It has been taken in then, and what was said of it in
// actions is so; the rest is decided with the next event. Only cpus_changed() is to be said again.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/id.hpp"
#include "heddle/cpu_set.hpp"
#include "heddle/machine.hpp"

namespace heddle {

struct WorkerTag;
/// A worker, by its place in 0..LocalServer::capacity()-1. The place of one that has ended is used again.
using WorkerId = Id<WorkerTag>;

struct WorkerLimits {
    int min = 0;  ///< workers kept although they find no work, as far as there are CPUs
    int max = 0;  ///< workers at most; 0: no limit but the CPUs
    Nanoseconds idle_delay = std::chrono::milliseconds(10);  ///< how long one without work keeps its CPU
    CpuSet reserved;  ///< CPUs for management: never used, even where they are usable
    /// Give back CPUs that no worker needs, so that others may use them, instead of keeping them at hand.
    bool give_back_unused = false;
    /// How long a worker sleeps before it first looks whether others wait for its CPU; 0: it never does.
    Nanoseconds first_look{0};
};

struct WorkerAction {
    enum class Kind : uint8_t {
        kStart,  ///< create the worker on `cpu`; it searches for work
        kWake,   ///< the sleeping worker searches for work again, on `cpu`
        /// The worker binds itself to `cpu` after its current item, then says moved(). A sleeping one is
        /// bound when it is woken, and says nothing.
        kMove,
        kEnd,       ///< the worker ends after its current item, then says ended()
        kReturn,    ///< nobody is on `cpu` any more, which was taken from us
        kGiveBack,  ///< we leave `cpu` to others; it is not usable until it is said to be again
        kDemand,    ///< we could now use `count` CPUs
    };
    Kind kind;
    WorkerId worker{};
    int cpu = -1;
    int count = 0;
    friend bool operator==(const WorkerAction&, const WorkerAction&) = default;
};

enum class WorkerState : uint8_t {
    kNone,       ///< there is no such worker
    kSearching,  ///< started or woken, and has not found work since
    kBusy,
    kIdle,     ///< found no work, and sleeps
    kLeaving,  ///< was told to end
};

class LocalServer {
  public:
    /// Throws kInvalidArgument for negative numbers, min above max, or where `reserved` leaves no CPU.
    LocalServer(Machine machine, WorkerLimits limits);

    /// The CPUs that this process may use, all of them each time. Workers on others leave, or move where
    /// there is room; each CPU that is gone is answered by one kReturn unless it is usable again before.
    /// `owed` are others, which somebody waits for: they are gone, also where they never were usable here.
    void cpus_changed(const CpuSet& usable, const CpuSet& owed, Time now);
    void cpus_changed(const CpuSet& usable, Time now) { cpus_changed(usable, {}, now); }
    /// There may be work that nobody has. To be said whenever wants_news(), and harmless otherwise.
    void work_arrived(Time now);
    /// The worker has got work, and is about to do it.
    void found_work(WorkerId worker, Time now);
    /// The worker looked everywhere. It sleeps now unless it is leaving. Whoever calls this looks once more
    /// whether work has arrived meanwhile, after it can be seen that wants_news().
    void out_of_work(WorkerId worker, Time now);
    /// The worker is bound to cpu_of() now.
    void moved(WorkerId worker, Time now);
    /// The worker is off its CPU. Its work is where others find it, if it left any or other work waits. If
    /// not, the caller looks once more, as after out_of_work().
    void ended(WorkerId worker, bool left_work, Time now);
    /// The worker could not be created. No other is tried until work arrives or the CPUs change.
    void start_failed(WorkerId worker, Time now);
    /// Ends whoever has slept for idle_delay, or sleeps on one of `awaited`, which others wait for, and is to
    /// look. To be called at deadline().
    void tick(const CpuSet& awaited, Time now);
    void tick(Time now) { tick({}, now); }
    /// All workers end, and none starts any more.
    void stop(Time now);

    /// What was decided since the last call, in order.
    [[nodiscard]] std::vector<WorkerAction> take_actions();

    /// Nobody is on the way to work that arrives now: it has to be announced.
    [[nodiscard]] bool wants_news() const { return !more_ && !stopping_; }
    /// When the sleeping worker is to look or to end; nothing where it may stay.
    [[nodiscard]] std::optional<Time> deadline(WorkerId worker) const;
    [[nodiscard]] WorkerState state(WorkerId worker) const { return at(worker).state; }
    [[nodiscard]] int cpu_of(WorkerId worker) const { return at(worker).cpu; }
    /// Workers that are not leaving; demand as last decided; places for workers.
    [[nodiscard]] int workers() const { return searching_ + busy_ + idle_; }
    [[nodiscard]] int busy() const { return busy_; }
    [[nodiscard]] int demand() const;
    [[nodiscard]] int capacity() const { return static_cast<int>(seats_.size()); }
    /// CPUs that workers hold, those of leaving ones included.
    [[nodiscard]] CpuSet occupied() const;
    [[nodiscard]] const CpuSet& usable() const { return usable_; }

  private:
    struct Seat {
        WorkerState state = WorkerState::kNone;
        int cpu = -1;
        int from = -1;  ///< where it still runs until it has moved to cpu
        Time idle_since{};
        Nanoseconds looks_after{};  ///< since then
    };

    [[nodiscard]] const Seat& at(WorkerId worker) const { return seats_[worker.value]; }
    [[nodiscard]] Seat& at(WorkerId worker) { return seats_[worker.value]; }
    [[nodiscard]] int& count_of(WorkerState state);
    void enter(Seat& seat, WorkerState state);
    [[nodiscard]] static bool awake(const Seat& seat);
    [[nodiscard]] bool is_to_end(const Seat& sleeper, const CpuSet& awaited, Time now) const;
    [[nodiscard]] static bool active(const Seat& seat);
    [[nodiscard]] CpuSet free_cpus() const { return usable_ - occupied(); }
    [[nodiscard]] CpuSet active_cpus() const;
    void say(WorkerAction::Kind kind, WorkerId worker, int cpu) { actions_.push_back({kind, worker, cpu}); }
    void send_away(WorkerId worker);
    void move(WorkerId worker, int cpu);

    void settle(Time now);
    void wake_or_start();
    [[nodiscard]] bool start_one();
    void compact();
    void release();

    Machine machine_;
    WorkerLimits limits_;
    int most_;  // workers that can be of use
    std::vector<Seat> seats_;
    CpuSet granted_;  // as told
    CpuSet usable_;   // of these, those for workers
    CpuSet revoked_;  // taken from us, and not answered yet
    int searching_ = 0, busy_ = 0, idle_ = 0, leaving_ = 0;
    bool more_ = true;  // work may be waiting that nobody has
    bool stopping_ = false;
    bool starts_fail_ = false;
    bool uneven_ = false;  // workers or CPUs changed since the last look at compactness
    int told_demand_ = -1;
    std::vector<WorkerAction> actions_;
};

}  // namespace heddle
