#include "cores/exchange.hpp"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

/// Tells one component of some changes. The first exception is kept; the rest is told all the same.
void announce(std::span<const Action> actions, const Callbacks& callbacks, const CpuSet& usable,
              const std::atomic<bool>& leaving, std::exception_ptr& failure) {
    const auto guarded = [&](const auto& callback, auto argument) {
        if (callback == nullptr || leaving.load(std::memory_order_acquire)) return;
        try {
            (*callback)(argument);
        } catch (...) {
            if (failure == nullptr) failure = std::current_exception();
        }
    };
    for (const Action& action : actions) {
        if (action.cpu < 0) continue;
        guarded(action.kind == Action::Kind::kEnable ? callbacks.enable_cpu : callbacks.disable_cpu,
                action.cpu);
    }
    if (!callbacks.need_mask()) return;
    CpuSet added;
    for (const Action& action : actions)
        if (action.kind == Action::Kind::kEnable && usable.contains(action.cpu)) added.insert(action.cpu);
    if (!added.empty()) guarded(callbacks.add_active_mask, std::cref(added));
    guarded(callbacks.set_active_mask, std::cref(usable));
    guarded(callbacks.set_num_threads, usable.count());
}

}  // namespace

thread_local std::optional<Outcome> Exchange::decided_before_throw;

Exchange::Exchange(Machine machine, const LedgerLimits& limits)
    : ledger_(std::move(machine), limits), by_slot_(Ledger::kMaxMembers) {}

MemberId Exchange::attach(std::string_view name, const CpuSet& owned) {
    const Report report(*this);
    Actions actions;
    std::unique_ptr<Plan> plan;
    MemberId member;
    {
        const std::lock_guard guard(lock_);
        if (spare_.empty()) {
            spare_.reserve(seats_.size() + 1);
            seats_.push_back(std::make_unique<Seat>());
            spare_.push_back(seats_.back().get());
        }
        member = ledger_.attach(name, owned, actions);
        // Nobody else brings back what is away where there is no arbiter.
        if (unowned_) ledger_.bring_back(owned, actions);
        publish(actions);
        plan = fill_inboxes(actions);  // the new member has no seat yet, and is not told
        Seat* seat = spare_.back();
        spare_.pop_back();
        seat->member = member;
        seat->open.store(member.value, std::memory_order_relaxed);
        by_slot_[Ledger::slot(member)].store(seat, std::memory_order_release);
    }
    try {
        if (plan != nullptr) carry_out(*plan);
    } catch (...) {
        (void)detach(member);  // nobody would know it
        throw;
    }
    return member;
}

Outcome Exchange::detach(MemberId member) {
    const Report report(*this);
    Actions actions;
    std::unique_ptr<Plan> plan;
    std::unique_ptr<const Callbacks>
        unused;  // these two are destroyed after the lock: they are the user's code
    std::vector<std::unique_ptr<const Callbacks>> retired;
    Seat* busy = nullptr;
    uint32_t departures = 0;
    {
        const std::lock_guard guard(lock_);
        Seat* seat = seat_of(member);
        const CpuSet owned = unowned_ ? ledger_.owned(member) : CpuSet{};
        if (seat == nullptr || ledger_.detach(member, actions) != Outcome::kSuccess)
            return Outcome::kPermission;
        if (unowned_) ledger_.take_away(owned - *unowned_, actions);
        publish_counts();
        // What a member used that is no more is in no action.
        if (watcher_ != nullptr) watcher_->rearranged(ledger_);
        by_slot_[Ledger::slot(member)].store(nullptr, std::memory_order_relaxed);
        seat->open.store(0, std::memory_order_relaxed);
        seat->member = kNobody;
        if (seat->state.exchange(kMore, std::memory_order_acq_rel) == kIdle || !seat->begun) {
            unused = std::move(seat->callbacks);
            std::swap(retired, seat->retired);
            vacate(*seat);
        } else {
            seat->leaving.store(true, std::memory_order_release);
            departures = seat->departures.load(std::memory_order_relaxed);
            if (!inside_callback()) busy = seat;
        }
        plan = fill_inboxes(actions);
    }
    work_.erase(member.value);  // it could not be put any more
    std::exception_ptr failure;
    try {
        if (plan != nullptr) carry_out(*plan);
    } catch (...) {
        failure = std::current_exception();
    }
    if (busy != nullptr) busy->departures.wait(departures, std::memory_order_acquire);
    if (failure == nullptr) return Outcome::kSuccess;
    decided_before_throw = Outcome::kSuccess;
    std::rethrow_exception(failure);
}

Outcome Exchange::set_work_source(MemberId member, WorkSources::Source source) {
    const bool put = work_.set(member.value, std::move(source), [&]() -> std::optional<std::string> {
        const std::lock_guard guard(lock_);
        if (!ledger_.attached(member)) return std::nullopt;
        return std::string(ledger_.name(member));
    });
    return put ? Outcome::kSuccess : Outcome::kPermission;
}

Outcome Exchange::set_enabled(MemberId member, bool enabled) {
    return call([&](Ledger& ledger, Actions& actions) {
        const Outcome outcome = enabled ? ledger.enable(member, actions) : ledger.disable(member, actions);
        if (Seat* seat = seat_of(member); seat != nullptr)
            seat->open.store(enabled ? member.value : 0, std::memory_order_relaxed);
        return outcome;
    });
}

void Exchange::set_watcher(ExchangeWatcher* watcher) {
    const std::lock_guard guard(lock_);
    watcher_ = watcher;
    publish_counts();
    if (watcher_ != nullptr) watcher_->rearranged(ledger_);
}

void Exchange::lend_unowned(const CpuSet& cpus) {
    (void)call([&](Ledger& ledger, Actions& actions) {
        if (ledger.shared()) return Outcome::kNoUpdate;
        CpuSet owned;
        for (const MemberId member : ledger.members()) owned |= ledger.owned(member);
        unowned_ = cpus;
        ledger.share(cpus | owned, actions);
        return Outcome::kSuccess;
    });
}

CpuSet Exchange::take_idle() {
    Actions none;  // nobody uses them
    const std::lock_guard guard(lock_);
    const CpuSet idle = ledger_.free_cpus();
    ledger_.take_away(idle, none);
    publish_counts();
    return idle;
}

bool Exchange::nothing_to_borrow(MemberId member) const noexcept {
    if (free_count_.load(std::memory_order_acquire) != 0) return false;
    const Seat* seat = by_slot_[Ledger::slot(member)].load(std::memory_order_acquire);
    return seat != nullptr && seat->open.load(std::memory_order_relaxed) == member.value;
}

Outcome Exchange::borrow(MemberId member) {
    return borrow_cpus(member, INT32_MAX);
}

Outcome Exchange::borrow_cpu(MemberId member, int cpu) {
    // Which CPUs exist never changes, and so needs no lock.
    if (ledger_.exists(cpu) && nothing_to_borrow(member)) return Outcome::kNoUpdate;
    return call([&](Ledger& ledger, Actions& actions) { return ledger.borrow_cpu(member, cpu, actions); });
}

Outcome Exchange::borrow_cpus(MemberId member, int count) {
    if (count >= 0 && nothing_to_borrow(member)) return Outcome::kNoUpdate;
    return call([&](Ledger& ledger, Actions& actions) { return ledger.borrow_cpus(member, count, actions); });
}

Outcome Exchange::borrow_cpu_mask(MemberId member, const CpuSet& cpus) {
    if (ledger_.machine().cpus().contains(cpus) && nothing_to_borrow(member)) return Outcome::kNoUpdate;
    return call(
        [&](Ledger& ledger, Actions& actions) { return ledger.borrow_cpu_mask(member, cpus, actions); });
}

std::optional<Callbacks> Exchange::callbacks(MemberId member) const {
    const std::lock_guard guard(lock_);
    const Seat* seat = seat_of(member);
    if (seat == nullptr) return std::nullopt;
    return seat->callbacks == nullptr ? Callbacks{} : *seat->callbacks;
}

Outcome Exchange::edit_callbacks(MemberId member, const std::function<void(Callbacks&)>& edit) {
    // Declared before the guard: destroyed after it, as what it holds is the user's code.
    std::unique_ptr<const Callbacks> old;
    auto fresh = std::make_unique<Callbacks>();
    const std::lock_guard guard(lock_);
    Seat* seat = seat_of(member);
    if (seat == nullptr) return Outcome::kPermission;
    if (seat->callbacks != nullptr) *fresh = *seat->callbacks;
    edit(*fresh);
    old = std::exchange(seat->callbacks, std::move(fresh));
    if (old == nullptr || seat->state.load(std::memory_order_acquire) == kIdle) return Outcome::kSuccess;
    if (seat->state.exchange(kMore, std::memory_order_acq_rel) == kIdle)
        seat->state.store(kIdle, std::memory_order_relaxed);
    else
        seat->retired.push_back(std::move(old));
    return Outcome::kSuccess;
}

bool Exchange::inside_callback() const noexcept {
    for (const auto& seat : seats_)
        if (seat->state.load(std::memory_order_relaxed) != kIdle &&
            pthread_equal(seat->deliverer.load(std::memory_order_relaxed), pthread_self()) != 0)
            return true;
    return false;
}

void Exchange::vacate(Seat& seat) {
    for (const Action& action : seat.inbox)
        if (action.cpu >= 0) seat.position[static_cast<size_t>(action.cpu)] = 0;
    seat.inbox.clear();
    seat.cancelled = 0;
    seat.unheard.assign(seat.unheard.size(), false);
    seat.begun = true;
    ++seat.charge;
    seat.leaving.store(false, std::memory_order_relaxed);
    seat.state.store(kIdle, std::memory_order_relaxed);
    seat.departures.fetch_add(1, std::memory_order_release);
    spare_.push_back(&seat);
}

/// What may fail comes first: a component that was told of half of it could not be told of anything else.
std::unique_ptr<Exchange::Plan> Exchange::room_for(const Actions& actions) {
    std::unique_ptr<Plan> plan;
    for (const Action& action : actions.all()) {
        Seat* seat = seat_of(action.member);
        if (seat == nullptr || seat->callbacks == nullptr) continue;
        if (plan == nullptr) {
            plan = std::make_unique<Plan>();
            plan->reserve(actions.all().size());
        }
        seat->make_room(action.cpu, actions.all().size());
    }
    return plan;
}

std::unique_ptr<Exchange::Plan> Exchange::fill_inboxes(const Actions& actions) {
    std::unique_ptr<Plan> plan = room_for(actions);
    if (plan == nullptr) return nullptr;
    for (const Action& action : actions.all()) {
        Seat* seat = seat_of(action.member);
        if (seat == nullptr || seat->callbacks == nullptr) continue;
        seat->put(action);
        const bool idle = seat->state.exchange(kMore, std::memory_order_acq_rel) == kIdle;
        if (!idle && seat->begun) continue;
        if (std::ranges::find(*plan, seat, &Charge::seat) != plan->end()) continue;
        seat->begun = false;
        seat->deliverer.store(pthread_self(), std::memory_order_relaxed);
        plan->push_back({seat, ++seat->charge});
    }
    return plan;
}

void Exchange::Seat::make_room(int cpu, size_t actions) {
    const auto cpus = static_cast<size_t>(cpu) + 1;
    if (position.size() < cpus) position.resize(cpus);
    if (unheard.size() < position.size()) unheard.resize(position.size());
    if (inbox.size() + actions > inbox.capacity()) inbox.reserve(2 * (inbox.size() + actions));
}

void Exchange::Seat::put(const Action& action) noexcept {
    const auto cpu = static_cast<size_t>(action.cpu);
    if (position[cpu] != 0) {
        // For one CPU enable and disable alternate: this one undoes the one that waits.
        unheard[cpu] = true;
        inbox[position[cpu] - 1].cpu = -1;
        position[cpu] = 0;
        ++cancelled;
    } else {
        inbox.push_back(action);
        position[cpu] = static_cast<uint32_t>(inbox.size());
    }
    if (cancelled > 64 && cancelled > inbox.size() / 2) {
        std::erase_if(inbox, [](const Action& a) { return a.cpu < 0; });
        cancelled = 0;
        for (size_t i = 0; i < inbox.size(); ++i)
            position[static_cast<size_t>(inbox[i].cpu)] = static_cast<uint32_t>(i + 1);
    }
}

void Exchange::carry_out(const Plan& plan) {
    std::exception_ptr failure;
    for (const Charge& charge : plan)
        if (begin(charge)) deliver_rest(*charge.seat, failure);
    if (failure != nullptr) std::rethrow_exception(failure);
}

void Exchange::carry_out_rest(Seat& seat) {
    std::exception_ptr failure;
    deliver_rest(seat, failure);
    if (failure != nullptr) std::rethrow_exception(failure);
}

bool Exchange::begin(const Charge& charge) {
    const std::lock_guard guard(lock_);
    if (charge.seat->charge != charge.number) return false;
    charge.seat->begun = true;
    return true;
}

void Exchange::carry_out_after_throw(Seat& seat) {
    std::exception_ptr failure = std::current_exception();
    if (!release(seat)) deliver_rest(seat, failure);
    std::rethrow_exception(failure);
}

void Exchange::tell_of_unheard(Seat& seat) const {
    CpuSet unheard;
    for (size_t cpu = 0; cpu < seat.unheard.size(); ++cpu)
        if (seat.unheard[cpu]) unheard.insert(static_cast<int>(cpu));
    if (unheard.empty()) return;
    for (const Action& action : seat.inbox)
        if (action.cpu >= 0) unheard.erase(action.cpu);
    // Somebody waits for these to be returned, and the member may have seen them in usable().
    const CpuSet to_return = unheard & ledger_.to_return(seat.member);
    // And it may be waiting for these, which it has lent itself, or seen to be gone.
    const CpuSet waited_for = (unheard & ledger_.usable(seat.member)) - to_return;
    seat.inbox.reserve(seat.inbox.size() + 2 * static_cast<size_t>(unheard.count()));
    const auto tell = [&](Action::Kind first, Action::Kind then, const CpuSet& cpus) {
        for (const int cpu : cpus) {
            seat.inbox.emplace_back(first, seat.member, cpu);
            seat.inbox.emplace_back(then, seat.member, cpu);
        }
    };
    tell(Action::Kind::kEnable, Action::Kind::kDisable, to_return);
    tell(Action::Kind::kDisable, Action::Kind::kEnable, waited_for);
    seat.unheard.assign(seat.unheard.size(), false);
}

void Exchange::deliver_rest(Seat& seat, std::exception_ptr& failure) {
    std::vector<Action> actions;
    CpuSet usable;
    while (true) {
        std::unique_ptr<const Callbacks> unused;  // these two are destroyed without the lock
        std::vector<std::unique_ptr<const Callbacks>> retired;
        const Callbacks* callbacks = nullptr;
        bool leaving = false;
        actions.clear();
        {
            const std::lock_guard guard(lock_);
            leaving = seat.leaving.load(std::memory_order_relaxed);
            callbacks = leaving ? nullptr : seat.callbacks.get();
            try {
                if (callbacks != nullptr) tell_of_unheard(seat);
                if (callbacks != nullptr && callbacks->need_mask()) usable = ledger_.usable(seat.member);
            } catch (...) {
                // Whoever has something for this seat next takes the inbox over.
                seat.begun = false;
                throw;
            }
            std::swap(actions, seat.inbox);
            for (const Action& action : actions)
                if (action.cpu >= 0) seat.position[static_cast<size_t>(action.cpu)] = 0;
            seat.cancelled = 0;
            std::swap(retired, seat.retired);
            if (!leaving)
                seat.state.store(kDelivering, std::memory_order_relaxed);
            else
                unused = std::move(seat.callbacks);
        }
        if (leaving) {
            // detach() promises that no callback runs afterwards, which includes their destructors.
            unused.reset();
            retired.clear();
            {
                const std::lock_guard guard(lock_);
                vacate(seat);
            }
            seat.departures.notify_all();
            return;
        }
        if (callbacks != nullptr && !actions.empty()) {
            try {
                announce(actions, *callbacks, usable, seat.leaving, failure);
            } catch (...) {
                if (failure == nullptr) failure = std::current_exception();
            }
        }
        if (release(seat)) return;
    }
}

}  // namespace heddle
