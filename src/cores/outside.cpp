#include "cores/outside.hpp"

#include <utility>

namespace heddle {

Outside::Outside(Exchange& exchange, ArbiterClientOptions options)
    : Outside(exchange, [&](ArbiterLink::Callbacks callbacks) {
          options.demand = 0;
          options.in_children = false;
          if (options.allowed.empty())
              options.allowed = allowance(exchange.ask([](const Ledger& l) { return l.machine(); })).usable;
          return std::make_unique<ArbiterClient>(options, std::move(callbacks));
      }) {}

Outside::Outside(Exchange& exchange, const Connect& connect) : exchange_(exchange) {
    link_ = connect({[this](const CpuSet& cpus) { gained(cpus); },
                     [this](const CpuSet& cpus) { asked_back(cpus); },
                     [this](heddle_client_page* page) { components_.show_on(page); },
                     [this] { components_.abandon(); }, [this] { count(); }});
    if (!link_->managed()) {
        problem_ = link_->problem();
        decide(Phase::kAlone);  // its callbacks, for which the link's end waits, end
        link_.reset();
        return;
    }
    const CpuSet here = link_->held();
    exchange_.set_watcher(this);
    exchange_.call([&](Ledger& ledger, Actions& actions) {
        ledger.share(here, actions);
        return Outcome::kSuccess;
    });
    decide(Phase::kJoined);
    settle();
}

Outside::~Outside() {
    if (link_ == nullptr) return;
    link_.get_deleter()(link_.get());  // its callbacks, which use it, have ended then
    (void)link_.release();
    exchange_.set_watcher(nullptr);
    exchange_.call([](Ledger& ledger, Actions& actions) {
        ledger.take_away(ledger.machine().cpus(), actions);
        return Outcome::kSuccess;
    });
}

void Outside::decide(Phase phase) {
    phase_.store(phase, std::memory_order_release);
    phase_.notify_all();
}

bool Outside::has_joined() const {
    phase_.wait(Phase::kJoining, std::memory_order_acquire);
    return phase_.load(std::memory_order_acquire) == Phase::kJoined;
}

void Outside::gained(const CpuSet& cpus) {
    if (!has_joined()) return;
    {
        const std::lock_guard guard(mutex_);
        lent_ -= cpus;
        leaving_ -= cpus;
    }
    try {
        bring(cpus);
    } catch (...) {  // out of a component's callback; nobody's call caused it
    }
}

void Outside::asked_back(const CpuSet& cpus) {
    if (!has_joined()) return;
    {
        const std::lock_guard guard(mutex_);
        lent_ -= cpus;
        leaving_ |= cpus;
    }
    try {
        exchange_.call([&](Ledger& ledger, Actions& actions) {
            ledger.take_away(cpus, actions);
            return Outcome::kSuccess;
        });
    } catch (...) {  // as above
    }
    try {
        settle();    // also where nobody was on them
    } catch (...) {  // no memory, or a callback threw
    }
}

void Outside::count() noexcept {
    if (!has_joined()) return;
    try {
        std::vector<ComponentTable::Work> all;
        exchange_.work().ask([&](uint32_t component, const std::string& name, const WorkCounts& counts) {
            all.push_back({component, name, counts});
        });
        components_.show_work(all);
    } catch (...) {  // no memory, or a source threw: what was shown stays
    }
}

/// Called by every call on the Exchange: a few loads while nothing has changed that matters outside.
void Outside::changed() noexcept {
    if (phase_.load(std::memory_order_relaxed) != Phase::kJoined) return;
    const bool same = exchange_.demand_changes() == heard_demands_.load(std::memory_order_relaxed) &&
                      exchange_.departures() == heard_departures_.load(std::memory_order_relaxed) &&
                      (exchange_.free_count() == 0 || !link_->others_wait());
    if (same) return;
    try {
        settle();
    } catch (...) {  // no memory, or a callback threw: the next change settles it
    }
}

void Outside::decided(const Ledger& ledger, const Actions& actions) noexcept {
    for (const Action& action : actions.all())
        // Where one member's CPU became another's there are two actions, and one change.
        if (action.kind == Action::Kind::kEnable || ledger.user(action.cpu) == kNobody)
            show_user(ledger, action.cpu);
}

void Outside::rearranged(const Ledger& ledger) noexcept {
    for (const int cpu : ledger.machine().cpus()) show_user(ledger, cpu);
}

void Outside::show_user(const Ledger& ledger, int cpu) noexcept {
    const MemberId user = ledger.user(cpu);
    components_.set(cpu, user.value, ledger.name(user));
}

void Outside::settle() {
    CpuSet back;
    {
        const std::lock_guard guard(mutex_);
        // Before the books are read: what changes after that is settled by whoever changes it.
        heard_departures_.store(exchange_.departures(), std::memory_order_relaxed);
        heard_demands_.store(exchange_.demand_changes(), std::memory_order_relaxed);
        const int demand = exchange_.demand();
        if (std::exchange(told_demand_, demand) != demand) link_->set_demand(demand);
        if (!leaving_.empty()) {
            const CpuSet left =
                leaving_ & exchange_.ask([](const Ledger& ledger) { return ledger.vacated(); });
            leaving_ -= left;
            for (const int cpu : left) link_->released(cpu);
        }
        if (!lent_.empty()) back = take_back();
        if (back.empty() && exchange_.free_count() > 0 && link_->others_wait()) lend_idle();
    }
    if (!back.empty()) bring(back);
}

/// Under mutex_: what somebody here asks for, and no other process has taken.
CpuSet Outside::take_back() {
    CpuSet missed;
    std::vector<Ledger::Petition> petitions;
    exchange_.ask([&](const Ledger& ledger) {
        missed = ledger.missed() & lent_;
        petitions = ledger.petitions();
        return 0;
    });
    CpuSet back;
    const auto take = [&](int cpu) {
        lent_.erase(cpu);
        const bool is_back = link_->reclaim(cpu);
        if (is_back) back.insert(cpu);
        return is_back;
    };
    for (const int cpu : missed) (void)take(cpu);
    for (const Ledger::Petition& petition : petitions) {
        int wanted = petition.wanted;
        for (const int cpu : lent_& petition.allowed) {
            if (wanted == 0) break;
            if (take(cpu)) --wanted;
        }
    }
    return back;
}

/// Under mutex_. One that is not held any more is about to be asked back.
void Outside::lend_idle() {
    for (const int cpu : exchange_.take_idle())
        if (link_->lend(cpu) == ArbiterLink::Lent::kLent) lent_.insert(cpu);
}

void Outside::bring(const CpuSet& cpus) {
    exchange_.call([&](Ledger& ledger, Actions& actions) {
        // Looked at under the ledger's lock: one that is asked back from here on is taken away after this.
        CpuSet held;
        for (const int cpu : cpus)
            if (link_->holds(cpu)) held.insert(cpu);
        ledger.bring_back(held, actions);
        return Outcome::kSuccess;
    });
}

}  // namespace heddle
