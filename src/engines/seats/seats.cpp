#include "engines/seats/seats.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace heddle {
namespace {

/// With a task in hand, before somebody is asked to make room.
constexpr auto kPatience = std::chrono::milliseconds(1);
/// Seats are taken from each other often where it takes no longer from one to the next.
constexpr auto kOften = std::chrono::milliseconds(5);

}  // namespace

Seats::Seats(const EngineOptions& options)
    : host_(options.host), provider_(options.provider), bind_(options.bind), most_(options.workers) {
    provider_.start([this] { provider_changed(); });
    provider_changed();
}

Seats::~Seats() {
    stop();
    Lock lock(mutex_);
    for (const auto& seat : seats_) vacate(*seat);
    settle();
    tell_provider(lock);
    quiet_.wait(lock, [this] { return !telling_; });
    lock.unlock();
    provider_.stop();
}

Seats::Seat& Seats::enter() {
    auto seat = std::make_unique<Seat>();
    seat->thread_ = pthread_self();
    CPU_ZERO(&seat->before_);
    pthread_getaffinity_np(seat->thread_, sizeof(seat->before_), &seat->before_);
    const std::lock_guard guard(mutex_);
    seats_.push_back(std::move(seat));
    seats_.back()->place_ = std::prev(seats_.end());
    return *seats_.back();
}

void Seats::leave(Seat& seat) noexcept {
    Lock lock(mutex_);
    if (seat.bound_to_ >= 0) pthread_setaffinity_np(seat.thread_, sizeof(seat.before_), &seat.before_);
    vacate(seat);
    forget_missed(seat);
    seats_.erase(seat.place_);
    settle();
    tell_provider(lock);
}

void Seats::part(Seat& seat) noexcept {
    Lock lock(mutex_);
    vacate(seat);
    forget_missed(seat);
    seat.bound_to_ = -1;
    settle();
    tell_provider(lock);
}

bool Seats::sit_down(Seat& seat, bool hurry, const std::function<bool()>& give_up) {
    Lock lock(mutex_);
    if (seat.state_.load() == State::kNone) {
        if (stopped_) return false;
        seat.hurry_ = hurry;
        while (!stand_in_line(seat)) {
            if (!hurry) throw std::bad_alloc();
            // The task in hand has nowhere else to go.
            lock.unlock();
            std::this_thread::yield();
            lock.lock();
            if (stopped_) return false;
        }
        tell_provider(lock);
        while (seat.state_.load() == State::kNone && !stopped_) {
            if (!hurry)
                seat.wake_.wait(lock);
            else if (seat.wake_.wait_for(lock, kPatience) == std::cv_status::timeout) {
                order_one();
                if (seat.state_.load() == State::kNone && give_up && give_up()) break;
            }
        }
        if (seat.state_.load() == State::kNone) {
            std::erase(waiting_, &seat);
            if (!stopped_) tell_provider(lock);
            return false;
        }
    }
    seat.state_.store(State::kBusy);
    const int cpu = seat.cpu_;
    lock.unlock();
    // By itself, and before anything runs on it: whoever gave it the CPU need not wait for the system.
    bind(seat, cpu);
    return true;
}

bool Seats::begin_if_free(Seat& seat) noexcept {
    Lock lock(mutex_);
    seat.hurry_ = true;
    if (stopped_ || !stand_in_line(seat)) return false;
    const bool seated = seat.state_.load() != State::kNone;
    if (!seated) std::erase(waiting_, &seat);
    tell_provider(lock);
    return seated;
}

/// False: there is no memory for that.
bool Seats::stand_in_line(Seat& seat) noexcept {
    try {
        waiting_.push_back(&seat);
        forget_missed(seat);
        settle();
        return true;
    } catch (...) {
        std::erase(waiting_, &seat);
        vacate(seat);
        return false;
    }
}

bool Seats::look(Seat& seat) noexcept {
    Lock lock(mutex_);
    seat.ordered_.store(false);
    if (seat.state_.load() == State::kNone) return false;
    const bool wanted = std::ranges::any_of(waiting_, &Seat::hurry_);
    if (!wanted && !stopped_ && !lost_.contains(seat.cpu_)) return true;
    vacate(seat);
    settle();
    tell_provider(lock);
    return false;
}

bool Seats::clear_idle() noexcept {
    Lock lock(mutex_);
    while (take_idle(false)) {
    }
    for (const auto& seat : seats_) seat->used_.store(false, std::memory_order_relaxed);
    forget_all_missed();
    settle();
    tell_provider(lock);
    return !occupied_.empty();
}

void Seats::stop() noexcept {
    const std::lock_guard guard(mutex_);
    stopped_ = true;
    for (Seat* seat : waiting_) seat->wake_.notify_one();
    for (const auto& seat : seats_) seat->ordered_.store(true);
    forget_all_missed();
}

void Seats::provider_changed() {
    Lock lock(mutex_);
    read_usable();
    settle();
    tell_provider(lock);
}

void Seats::read_usable() {
    // What is on its way back is not to be used until the provider knows.
    const CpuSet on_its_way = given_back_ | returned_ | parting_;
    CpuSet usable = provider_.usable() - on_its_way;
    // Some of these may have come and gone since the last look.
    const CpuSet owed = provider_.to_return() - on_its_way;
    usable -= owed;
    const CpuSet gone = (granted_ - usable) | owed;
    granted_ = usable;
    lost_ -= usable;
    lost_ |= gone & occupied_;
    returned_ |= gone - occupied_;
    for (const auto& seat : seats_) {
        if (seat->cpu_ < 0 || !lost_.contains(seat->cpu_)) continue;
        seat->ordered_.store(true);
        auto idle = State::kIdle;
        if (seat->state_.compare_exchange_strong(idle, State::kNone)) vacate(*seat);
    }
}

void Seats::vacate(Seat& seat) {
    seat.state_.store(State::kNone);
    seat.ordered_.store(false);
    const int cpu = std::exchange(seat.cpu_, -1);
    if (cpu < 0) return;
    occupied_.erase(cpu);
    if (!lost_.contains(cpu)) return;
    lost_.erase(cpu);
    returned_.insert(cpu);
    // Asleep or not, it is not to come to on that CPU.
    if (seat.bound_to_ >= 0) pthread_setaffinity_np(seat.thread_, sizeof(seat.before_), &seat.before_);
    seat.bound_to_ = -1;
}

void Seats::forget_missed(Seat& seat) noexcept {
    missed_count_ -= std::exchange(seat.missed_, false) ? 1 : 0;
}

void Seats::forget_all_missed() noexcept {
    for (const auto& seat : seats_) seat->missed_ = false;
    missed_count_ = 0;
}

/// With `used`, of any idle one, for somebody with a task. Where that happens again and again each has enough
/// to do for a CPU, and may never wait for one: bound to the same CPU they are never in tasks at once.
bool Seats::take_idle(bool used) {
    for (const auto& seat : seats_) {
        if (!used && seat->used_.load(std::memory_order_relaxed)) continue;
        auto idle = State::kIdle;
        if (!seat->state_.compare_exchange_strong(idle, State::kNone)) continue;
        vacate(*seat);
        if (!used) return true;
        const Time now = SteadyClock().now();
        if (now - std::exchange(taken_at_, now) > kOften) return true;
        seat->missed_ = true;
        ++missed_count_;
        return true;
    }
    return false;
}

void Seats::order_one() {
    for (const auto& seat : seats_)
        if (seat->cpu_ >= 0 && !seat->ordered_.exchange(true)) break;
    // It may have become idle before it was ordered.
    settle();
}

void Seats::settle() {
    while (!waiting_.empty() && !stopped_) {
        CpuSet free = granted_ - occupied_;
        const bool room = occupied_.count() < most_ && !free.empty();
        if (!room) {
            if (!std::ranges::any_of(waiting_, &Seat::hurry_) || !take_idle(true)) break;
            continue;
        }
        // Who has a task in hand goes before who looks for one.
        const auto hurried = std::ranges::find_if(waiting_, &Seat::hurry_);
        const auto next = hurried == waiting_.end() ? waiting_.begin() : hurried;
        Seat& seat = **next;
        const int cpu = choose(free);  // where memory is short it is nobody's yet
        occupied_.insert(cpu);
        waiting_.erase(next);
        seat.cpu_ = cpu;
        seat.state_.store(State::kBusy);
        seat.wake_.notify_one();
    }
    if (missed_count_ > 0 && SteadyClock().now() - taken_at_ > kOften) forget_all_missed();
    if (!provider_.shares()) return;
    CpuSet unused = granted_ - occupied_;
    for (int more = wanted_more(); more > 0 && !unused.empty(); --more) unused.erase(unused.first());
    granted_ -= unused;
    given_back_ |= unused;
}

int Seats::wanted_more() const {
    return std::min(most_ - occupied_.count(), static_cast<int>(waiting_.size()) + missed_count_);
}

void Seats::tell_provider(Lock& lock) {
    if (telling_) return;
    telling_ = true;
    while (true) {
        const int wanted = stopped_ ? 0 : occupied_.count() + wanted_more();
        const CpuSet returned = std::exchange(returned_, {});
        const CpuSet given_back = std::exchange(given_back_, {});
        if (wanted == told_demand_ && returned.empty() && given_back.empty()) break;
        parting_ = returned | given_back;
        // Who gives back more than its demand says is given CPUs again.
        const bool falls = wanted < told_demand_;
        const bool changed = wanted != told_demand_;
        told_demand_ = wanted;
        lock.unlock();
        try {
            if (falls) provider_.set_demand(wanted);
            if (!returned.empty()) provider_.returned(returned);
            if (!given_back.empty()) provider_.give_back(given_back);
            if (changed && !falls) provider_.set_demand(wanted);
        } catch (...) {
            // Without memory it is not told this time; the next change tells it.
        }
        lock.lock();
        parting_ = {};
        read_usable();
        settle();
    }
    telling_ = false;
    quiet_.notify_all();
}

int Seats::choose(const CpuSet& free) const {
    return host_.nearest(occupied_, free);
}

void Seats::bind(Seat& seat, int cpu) noexcept {
    if (!bind_ || seat.bound_to_ == cpu) return;
    const auto mask = CpuSet{cpu}.to_native();
    const auto* native = reinterpret_cast<const cpu_set_t*>(mask.data());
    if (pthread_setaffinity_np(seat.thread_, mask.size() * sizeof(unsigned long), native) == 0)
        seat.bound_to_ = cpu;
}

}  // namespace heddle
