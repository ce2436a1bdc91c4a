#include "cores/local_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cores/compact_set.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr auto id_of = [](size_t place) { return WorkerId{static_cast<uint32_t>(place)}; };

}  // namespace

LocalServer::LocalServer(Machine machine, WorkerLimits limits)
    : machine_(std::move(machine)), limits_(std::move(limits)) {
    const int cpus = (machine_.cpus() - limits_.reserved).count();
    if (cpus == 0)
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "all CPUs ({}) are reserved for management, and workers need at least one; reserve fewer",
                limits_.reserved.to_list()));
    if (limits_.min < 0 || limits_.max < 0 || limits_.idle_delay < Nanoseconds(0) ||
        limits_.first_look < Nanoseconds(0) || (limits_.max != 0 && limits_.min > limits_.max))
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("workers from {} to {} with an idle delay of {} ns: use numbers from 0 up, and "
                        "a minimum that is not above the maximum",
                        limits_.min, limits_.max, limits_.idle_delay.count()));
    most_ = limits_.max == 0 ? cpus : std::min(limits_.max, cpus);
    seats_.resize(static_cast<size_t>(cpus));  // each worker, leaving ones included, holds a CPU of its own
}

int LocalServer::demand() const {
    if (stopping_) return 0;
    return std::clamp(busy_ + (more_ ? 1 : 0), std::min(limits_.min, most_), most_);
}

void LocalServer::cpus_changed(const CpuSet& usable, const CpuSet& owed, Time now) {
    // Whoever asks for a reserved CPU back wants an answer, too.
    revoked_ |= (granted_ - usable) | owed;
    revoked_ -= usable;
    granted_ = usable;
    usable_ = (usable & machine_.cpus()) - limits_.reserved;
    starts_fail_ = false;
    uneven_ = true;
    for (size_t i = 0; i < seats_.size(); ++i) {
        const Seat& seat = seats_[i];
        if (!active(seat) || usable_.contains(seat.cpu)) continue;
        const CpuSet room = seat.state == WorkerState::kIdle
                                ? CpuSet{}
                                : machine_.nearest(active_cpus() & usable_, free_cpus(), 1);
        if (!room.empty()) {
            move(id_of(i), room.first());
        } else {
            // Its queue stays: the number of queues, which demand is, does not fall.
            more_ = more_ || seat.state == WorkerState::kBusy;
            send_away(id_of(i));
        }
    }
    settle(now);
}

void LocalServer::work_arrived(Time now) {
    more_ = true;
    starts_fail_ = false;
    settle(now);
}

void LocalServer::found_work(WorkerId worker, Time now) {
    if (at(worker).state != WorkerState::kSearching) return;
    enter(at(worker), WorkerState::kBusy);
    more_ = true;
    settle(now);
}

void LocalServer::out_of_work(WorkerId worker, Time now) {
    Seat& seat = at(worker);
    if (!awake(seat)) return;
    enter(seat, WorkerState::kIdle);
    // A sleeper is nowhere; whoever wakes it binds it first.
    if (std::exchange(seat.from, -1) >= 0) uneven_ = true;
    seat.idle_since = now;
    seat.looks_after = limits_.first_look == Nanoseconds(0)
                           ? limits_.idle_delay
                           : std::min(limits_.first_look, limits_.idle_delay);
    // Another that searches may still find something, and then says so.
    if (searching_ == 0) more_ = false;
    settle(now);
}

void LocalServer::moved(WorkerId worker, Time now) {
    at(worker).from = -1;
    uneven_ = true;
    settle(now);
}

void LocalServer::ended(WorkerId worker, bool left_work, Time now) {
    Seat& seat = at(worker);
    enter(seat, WorkerState::kNone);
    // Others that search or leave may still find something or leave it behind, and then say so.
    if (left_work || (searching_ == 0 && leaving_ == 0)) more_ = left_work;
    seat.cpu = seat.from = -1;
    uneven_ = true;
    settle(now);
}

void LocalServer::start_failed(WorkerId worker, Time now) {
    Seat& seat = at(worker);
    enter(seat, WorkerState::kNone);
    seat.cpu = seat.from = -1;
    starts_fail_ = true;
    if (searching_ == 0) more_ = false;
    settle(now);
}

void LocalServer::tick(const CpuSet& awaited, Time now) {
    // The longest asleep first, as long as more than the minimum are there.
    while (workers() > limits_.min) {
        size_t oldest = seats_.size();
        for (size_t i = 0; i < seats_.size(); ++i)
            if (is_to_end(seats_[i], awaited, now) &&
                (oldest == seats_.size() || seats_[i].idle_since < seats_[oldest].idle_since))
                oldest = i;
        if (oldest == seats_.size()) break;
        send_away(id_of(oldest));
    }
    for (Seat& seat : seats_)
        while (seat.state == WorkerState::kIdle && seat.looks_after < limits_.idle_delay &&
               seat.idle_since + seat.looks_after <= now)
            seat.looks_after = std::min(2 * seat.looks_after, limits_.idle_delay);
    settle(now);
}

bool LocalServer::is_to_end(const Seat& sleeper, const CpuSet& awaited, Time now) const {
    if (sleeper.state != WorkerState::kIdle || sleeper.idle_since + sleeper.looks_after > now) return false;
    return sleeper.idle_since + limits_.idle_delay <= now || awaited.contains(sleeper.cpu);
}

void LocalServer::stop(Time now) {
    stopping_ = true;
    for (size_t i = 0; i < seats_.size(); ++i)
        if (active(seats_[i])) send_away(id_of(i));
    settle(now);
}

std::optional<Time> LocalServer::deadline(WorkerId worker) const {
    const Seat& seat = at(worker);
    if (seat.state != WorkerState::kIdle || workers() <= limits_.min) return std::nullopt;
    return seat.idle_since + seat.looks_after;
}

std::vector<WorkerAction> LocalServer::take_actions() {
    return std::exchange(actions_, {});
}

CpuSet LocalServer::occupied() const {
    CpuSet cpus;
    for (const Seat& seat : seats_) {
        if (seat.cpu >= 0) cpus.insert(seat.cpu);
        if (seat.from >= 0) cpus.insert(seat.from);
    }
    return cpus;
}

CpuSet LocalServer::active_cpus() const {
    CpuSet cpus;
    for (const Seat& seat : seats_)
        if (active(seat)) cpus.insert(seat.cpu);
    return cpus;
}

bool LocalServer::awake(const Seat& seat) {
    return seat.state == WorkerState::kSearching || seat.state == WorkerState::kBusy;
}

bool LocalServer::active(const Seat& seat) {
    return awake(seat) || seat.state == WorkerState::kIdle;
}

int& LocalServer::count_of(WorkerState state) {
    if (state == WorkerState::kSearching) return searching_;
    if (state == WorkerState::kBusy) return busy_;
    return state == WorkerState::kIdle ? idle_ : leaving_;
}

void LocalServer::enter(Seat& seat, WorkerState state) {
    if (seat.state != WorkerState::kNone) --count_of(seat.state);
    if (state != WorkerState::kNone) ++count_of(state);
    seat.state = state;
}

void LocalServer::send_away(WorkerId worker) {
    say(WorkerAction::Kind::kEnd, worker, at(worker).cpu);
    enter(at(worker), WorkerState::kLeaving);
    uneven_ = true;
}

void LocalServer::move(WorkerId worker, int cpu) {
    Seat& seat = at(worker);
    say(WorkerAction::Kind::kMove, worker, cpu);
    if (seat.state != WorkerState::kIdle && seat.from < 0) seat.from = seat.cpu;
    seat.cpu = cpu;
}

void LocalServer::settle(Time) {
    if (!stopping_) {
        wake_or_start();
        compact();
    }
    release();
    if (demand() != told_demand_) {
        actions_.push_back({WorkerAction::Kind::kDemand, {}, -1, demand()});
        told_demand_ = demand();
    }
}

void LocalServer::wake_or_start() {
    // One searcher at a time: what it finds, or not, says whether another one is of use.
    if (more_ && searching_ == 0 && busy_ < most_ && idle_ > 0) {
        size_t latest = seats_.size();
        for (size_t i = 0; i < seats_.size(); ++i)
            if (seats_[i].state == WorkerState::kIdle &&
                (latest == seats_.size() || seats_[i].idle_since > seats_[latest].idle_since))
                latest = i;
        say(WorkerAction::Kind::kWake, id_of(latest), seats_[latest].cpu);
        enter(seats_[latest], WorkerState::kSearching);
    }
    while (!starts_fail_ && demand() > workers() && start_one()) {
    }
}

bool LocalServer::start_one() {
    const CpuSet cpu = machine_.nearest(active_cpus(), free_cpus(), 1);
    const auto place =
        std::ranges::find(seats_, WorkerState::kNone, [](const Seat& seat) { return seat.state; });
    if (cpu.empty() || place == seats_.end()) return false;
    say(WorkerAction::Kind::kStart, id_of(static_cast<size_t>(place - seats_.begin())), cpu.first());
    enter(*place, WorkerState::kSearching);
    place->cpu = cpu.first();
    uneven_ = true;
    return true;
}

void LocalServer::compact() {
    if (!uneven_) return;
    const CpuSet used = active_cpus();
    const CpuSet target = compact_set(machine_, used, used | free_cpus());
    CpuSet room = target - used;
    for (size_t i = 0; i < seats_.size(); ++i) {
        if (!active(seats_[i]) || target.contains(seats_[i].cpu)) continue;
        const int cpu = machine_.nearest({seats_[i].cpu}, room, 1).first();
        room.erase(cpu);
        move(id_of(i), cpu);
    }
    uneven_ = false;
}

void LocalServer::release() {
    const CpuSet held = occupied();
    for (const int cpu : revoked_ - held) {
        say(WorkerAction::Kind::kReturn, {}, cpu);
        revoked_.erase(cpu);
    }
    if (!limits_.give_back_unused || demand() > workers()) return;
    for (const int cpu : usable_ - held) {
        say(WorkerAction::Kind::kGiveBack, {}, cpu);
        usable_.erase(cpu);
        granted_.erase(cpu);
    }
}

}  // namespace heddle
