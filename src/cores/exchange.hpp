// Exchange: the components of one process around one Ledger.
//
// Thread-safe: a call takes the lock, asks the ledger, and gives the lock back; only then the callbacks run.
// process() is the one that heddle::Component and the C interface use; tests and the local resource server
// may have their own. Components must be gone before their exchange is. A failing borrow takes no lock: it
// reads how many CPUs are free. All of it dies with the process, and nothing of it survives fork(2).
//
// How callbacks are kept in order. Each member has a Seat with a state, an inbox, and its callbacks:
//   idle        nobody is calling this component
//   delivering  one thread is, and nothing new has been decided for it since that thread last looked
//   more        one thread is or will be, and the inbox has something, or the component has detached
// idle -> delivering and anything -> more happen only under the lock. The delivering thread alone goes back
// to idle, by compare-and-swap without the lock, which fails when there is more; it then takes the lock and
// fetches the inbox. So no action is left behind, and two threads never deliver to one component.
// A single action for an idle seat goes straight to its callback: that is the fast path, with two locked
// instructions a call.
#pragma once

#include <pthread.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "cores/ledger.hpp"
#include "cores/short_lock.hpp"
#include "cores/work_sources.hpp"

namespace heddle {

/// The callbacks of one component; never changed once a seat has them, only replaced. Shared, so that copying
/// them runs nothing of the user's.
struct Callbacks {
    template <class Argument>
    using Shared = std::shared_ptr<const std::function<void(Argument)>>;
    Shared<int> enable_cpu, disable_cpu, set_num_threads;
    Shared<const CpuSet&> set_active_mask, add_active_mask;
    [[nodiscard]] bool need_mask() const { return set_num_threads || set_active_mask || add_active_mask; }
};

/// Who hears that a ledger which is shared with other processes has changed (outside.hpp).
class ExchangeWatcher {
  public:
    virtual ~ExchangeWatcher() = default;
    /// Under the lock: who uses which CPU has changed by these actions, or anyhow.
    virtual void decided(const Ledger& ledger, const Actions& actions) noexcept = 0;
    virtual void rearranged(const Ledger& ledger) noexcept = 0;
    /// In the thread whose call changed it, without the lock, after the callbacks that this call ran.
    virtual void changed() noexcept = 0;
};

class Exchange {
  public:
    /// This process's, on Machine::detect(); made at the first use, in a forked child once more, and never
    /// destroyed. Where an arbiter listens then, the process shares its machine with others (outside.hpp).
    [[nodiscard]] static Exchange& process();

    explicit Exchange(Machine machine, const LedgerLimits& limits = {});
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// As Ledger::attach; what the new member owns is not announced to it.
    [[nodiscard]] MemberId attach(std::string_view name, const CpuSet& owned);
    /// Afterwards no callback of the member runs; see Component's destructor.
    Outcome detach(MemberId member);
    Outcome set_enabled(MemberId member, bool enabled);

    /// Runs `decide(Ledger&, Actions&) -> Outcome` under the lock and the callbacks of its actions after it.
    /// Throws what one of these throws, when all were called and the decision stands: it is then in
    /// decided_before_throw.
    template <class Decide>
    Outcome call(Decide&& decide);
    static thread_local std::optional<Outcome> decided_before_throw;
    /// As the ledger's, but without the lock while no CPU is free and the arguments are in order.
    Outcome borrow(MemberId member);
    Outcome borrow_cpu(MemberId member, int cpu);
    Outcome borrow_cpus(MemberId member, int count);
    Outcome borrow_cpu_mask(MemberId member, const CpuSet& cpus);
    /// Of `cpus`, those that nobody owns are lent to all from now on, as in a process that an arbiter knows;
    /// the first call counts, and none where there is an arbiter.
    void lend_unowned(const CpuSet& cpus);
    /// From now on the watcher hears of changes; null: nobody. No call may be under way.
    void set_watcher(ExchangeWatcher* watcher);
    /// What components use or could use, and how often one has left a CPU that is away; without the lock.
    [[nodiscard]] int demand() const noexcept { return demand_.load(std::memory_order_acquire); }
    /// How often that has changed: it may be as before, and yet what is wanted another CPU.
    [[nodiscard]] uint32_t demand_changes() const noexcept {
        return demand_changes_.load(std::memory_order_acquire);
    }
    [[nodiscard]] uint32_t departures() const noexcept { return departures_.load(std::memory_order_acquire); }
    [[nodiscard]] int free_count() const noexcept { return free_count_.load(std::memory_order_acquire); }
    /// Takes away those of them that nobody uses or wants, and gives them. Runs no callback.
    [[nodiscard]] CpuSet take_idle();

    /// Runs `question(const Ledger&)` under the lock.
    template <class Question>
    auto ask(Question&& question) const;

    /// Replaces one callback; null or empty removes it. kPermission: no such member.
    template <class Argument>
    Outcome set_callback(MemberId member, Callbacks::Shared<Argument> Callbacks::*which,
                         std::function<void(Argument)> callback);

    /// Whom to ask what the member has done; see Component::on_count. kPermission: no such member.
    Outcome set_work_source(MemberId member, WorkSources::Source source);
    [[nodiscard]] const WorkSources& work() const noexcept { return work_; }
    [[nodiscard]] WorkSources& work() noexcept { return work_; }

    /// What is set, or nothing where there is no such member.
    [[nodiscard]] std::optional<Callbacks> callbacks(MemberId member) const;

  private:
    enum SeatState : uint32_t { kIdle, kDelivering, kMore };

    struct Seat {
        std::atomic<uint32_t> state{kIdle};
        /// The member's id while it is attached and enabled, or 0. Written under the lock; borrow() reads it.
        std::atomic<uint32_t> open{0};
        /// Set under the lock by detach(); the delivering thread reads it between callbacks.
        std::atomic<bool> leaving{false};
        /// Counts the members that have left; detach() waits on it.
        std::atomic<uint32_t> departures{0};
        std::atomic<pthread_t> deliverer{};  // meaningful unless idle
        MemberId member;                     // this and what follows: under the lock
        /// Who is in charge of the inbox has begun with it; until then another may take it over.
        bool begun = true;
        uint32_t charge = 0;  // grows whenever somebody takes charge of the inbox
        std::unique_ptr<const Callbacks> callbacks;
        std::vector<std::unique_ptr<const Callbacks>> retired;  // the delivering thread may be in one
        std::vector<Action> inbox;                              // a cpu of -1: cancelled
        std::vector<uint32_t> position;                         // by CPU: 1 + where in the inbox it is, or 0
        size_t cancelled = 0;
        std::vector<bool> unheard;  // by CPU: it came and went, or went and came, before that was told

        /// For so many actions, one of them of this CPU. Throws std::bad_alloc; put() then does not.
        void make_room(int cpu, size_t actions);
        void put(const Action& action) noexcept;
    };

    /// Seats whose inboxes this thread is in charge of once the lock is given back, unless by then another
    /// has taken the charge over: nobody waits for the callbacks of components that only come before.
    struct Charge {
        Seat* seat;
        uint32_t number;
    };
    using Plan = std::vector<Charge>;
    /// The fast path: one action, for a component that nobody is calling. Null where it cannot be taken.
    struct Direct {
        Seat* seat = nullptr;
        const Callbacks* callbacks = nullptr;
    };

    /// At the end of a call tells the watcher, whatever the callbacks did.
    class Report {
      public:
        explicit Report(const Exchange& exchange) : watcher_(exchange.watcher_) {}
        ~Report() {
            if (watcher_ != nullptr) watcher_->changed();
        }
        Report(const Report&) = delete;
        Report& operator=(const Report&) = delete;

      private:
        ExchangeWatcher* watcher_;
    };

    [[nodiscard]] Seat* seat_of(MemberId member) const noexcept;
    [[nodiscard]] bool nothing_to_borrow(MemberId member) const noexcept;
    void publish_counts() noexcept;
    void publish(const Actions& actions) noexcept;
    /// `edit` changes a copy of what is set; it runs under the lock.
    Outcome edit_callbacks(MemberId member, const std::function<void(Callbacks&)>& edit);
    [[nodiscard]] Direct claim(const Action& action) noexcept;
    [[nodiscard]] static bool release(Seat& seat) noexcept;
    [[nodiscard]] std::unique_ptr<Plan> fill_inboxes(const Actions& actions);
    [[nodiscard]] std::unique_ptr<Plan> room_for(const Actions& actions);
    void carry_out(const Direct& direct, const Action& action);
    void carry_out(const Plan& plan);
    void carry_out_rest(Seat& seat);
    [[noreturn]] void carry_out_after_throw(Seat& seat);
    /// Under the lock: of what undid itself in the inbox, what the member has to hear all the same.
    void tell_of_unheard(Seat& seat) const;
    void deliver_rest(Seat& seat, std::exception_ptr& failure);
    [[nodiscard]] bool begin(const Charge& charge);
    void vacate(Seat& seat);
    [[nodiscard]] bool inside_callback() const noexcept;

    mutable ShortLock lock_;
    WorkSources work_;
    Ledger ledger_;                             // under lock_, as are the next two
    std::vector<std::unique_ptr<Seat>> seats_;  // never shrinks: a seat's address stays good
    std::vector<Seat*> spare_;
    // By the member's slot. Written under lock_ (release: the seat is ready), read without it by borrow()
    // (acquire), which then compares the seat's member.
    std::vector<std::atomic<Seat*>> by_slot_;
    // Written under lock_, read without it. Read as 0, no CPU was free at that moment, and a borrow may fail
    // as if it had happened then; release and acquire so that a thread told of a lend sees it.
    std::atomic<int> free_count_{0};
    // Only where there is a watcher. Written under lock_ (release), read by the watcher without it (acquire):
    // whoever changed something reads what it changed, or something newer.
    std::atomic<int> demand_{0};
    std::atomic<uint32_t> departures_{0};
    std::atomic<uint32_t> demand_changes_{0};
    ExchangeWatcher* watcher_ = nullptr;  // changes only while there is no call
    std::optional<CpuSet> unowned_;       // what lend_unowned() has lent; under lock_
};

inline void Exchange::publish_counts() noexcept {
    free_count_.store(ledger_.free_count(), std::memory_order_release);
    if (watcher_ == nullptr) return;
    if (const int demand = ledger_.demand(); demand != demand_.load(std::memory_order_relaxed)) {
        demand_.store(demand, std::memory_order_release);
        demand_changes_.fetch_add(1, std::memory_order_release);
    }
    departures_.store(ledger_.departures(), std::memory_order_release);
}

inline void Exchange::publish(const Actions& actions) noexcept {
    publish_counts();
    if (watcher_ != nullptr && !actions.empty()) watcher_->decided(ledger_, actions);
}

inline Exchange::Seat* Exchange::seat_of(MemberId member) const noexcept {
    Seat* seat = by_slot_[Ledger::slot(member)].load(std::memory_order_relaxed);
    return seat != nullptr && seat->member == member ? seat : nullptr;
}

inline Exchange::Direct Exchange::claim(const Action& action) noexcept {
    Seat* seat = seat_of(action.member);
    if (seat == nullptr || seat->callbacks == nullptr || seat->callbacks->need_mask()) return {};
    // acquire: what the previous callbacks wrote is seen by those to come, whichever thread runs them.
    if (seat->state.load(std::memory_order_acquire) != kIdle) return {};
    seat->state.store(kDelivering, std::memory_order_relaxed);
    seat->deliverer.store(pthread_self(), std::memory_order_relaxed);
    return {seat, seat->callbacks.get()};
}

/// False where more has come in the meantime, and the seat is still this thread's.
inline bool Exchange::release(Seat& seat) noexcept {
    uint32_t expected = kDelivering;
    // release: see claim().
    return seat.state.compare_exchange_strong(expected, kIdle, std::memory_order_release,
                                              std::memory_order_relaxed);
}

inline void Exchange::carry_out(const Direct& direct, const Action& action) {
    const Callbacks::Shared<int>& callback =
        action.kind == Action::Kind::kEnable ? direct.callbacks->enable_cpu : direct.callbacks->disable_cpu;
    try {
        if (callback != nullptr) (*callback)(action.cpu);
    } catch (...) {
        carry_out_after_throw(*direct.seat);
    }
    if (!release(*direct.seat)) carry_out_rest(*direct.seat);
}

template <class Decide>
Outcome Exchange::call(Decide&& decide) {
    const Report report(*this);
    Actions actions;
    Direct direct;
    std::unique_ptr<Plan> plan;
    Outcome outcome;
    {
        const std::lock_guard guard(lock_);
        outcome = decide(ledger_, actions);
        publish(actions);
        if (actions.size() == 1) direct = claim(actions.all()[0]);
        if (direct.seat == nullptr && !actions.empty()) plan = fill_inboxes(actions);
    }
    try {
        if (direct.seat != nullptr)
            carry_out(direct, actions.all()[0]);
        else if (plan != nullptr)
            carry_out(*plan);
    } catch (...) {
        decided_before_throw = outcome;
        throw;
    }
    return outcome;
}

template <class Argument>
Outcome Exchange::set_callback(MemberId member, Callbacks::Shared<Argument> Callbacks::*which,
                               std::function<void(Argument)> callback) {
    Callbacks::Shared<Argument> shared;
    if (callback) shared = std::make_shared<const std::function<void(Argument)>>(std::move(callback));
    return edit_callbacks(member, [&](Callbacks& callbacks) { callbacks.*which = shared; });
}

template <class Question>
auto Exchange::ask(Question&& question) const {
    const std::lock_guard guard(lock_);
    return question(ledger_);
}

}  // namespace heddle
