#include "tasks/crew.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "tasks/outer_affinity.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

/// How long a kernel that has a CPU waits for the others.
constexpr auto kGather = std::chrono::microseconds(500);
/// How long a thread is held up that the kernel may need: the others may wait for what it is to run.
constexpr auto kLongestHeldUp = std::chrono::milliseconds(100);
/// Where too many wait for a CPU to be remembered: how long until it asks again.
constexpr auto kAskAgain = std::chrono::milliseconds(1);

/// What callbacks of other components throw, which a call of the ledger may run, has nobody here to go to.
template <class Call>
void quietly(const Call& call) noexcept {
    try {
        call();
    } catch (...) {
        // The ledger has done what it was asked all the same.
    }
}

/// Threads may end after main has, or without memory.
constinit std::mutex crews_mutex;
static_assert(std::is_trivially_destructible_v<std::mutex>);

}  // namespace

Crew::Membership::~Membership() {
    const std::lock_guard guard(crews_mutex);
    if (crew != nullptr) crew->remove(*this);
    if (left != nullptr) left->forget(*this);
}

Crew::Membership& Crew::membership() noexcept {
    thread_local Membership of_thread;
    return of_thread;
}

Crew::Crew(const CrewOptions& options, CpuSet wanted) : options_(options), wanted_(std::move(wanted)) {}

Crew::~Crew() {
    end();
}

void Crew::end() noexcept {
    {
        // The runtime kept a thread that it has not told of: it goes back to where it was.
        const std::lock_guard guard(crews_mutex);
        while (!members_.empty()) {
            Membership& last = *members_.back();
            bind_back(last);
            remove(last);
        }
        while (!left_.empty()) {
            Membership& last = *left_.back();
            bind_back(last);
            forget(last);
        }
    }
    // Others are told in this thread, which libomp may have bound by itself.
    const CalledOutside called(options_.makers_affinity);
    if (component_.has_value()) quietly([this] { (void)component_->detach(); });
}

Crew* Crew::here() noexcept {
    return membership().crew;
}

void Crew::remove(Membership& member) noexcept {
    std::erase(members_, &member);
    member.crew = nullptr;
    member.cpu = -1;
    member.kernels_own = false;
}

void Crew::forget(Membership& member) noexcept {
    std::erase(left_, &member);
    member.left = nullptr;
}

void Crew::join() noexcept {
    Membership& self = membership();
    const std::lock_guard guard(crews_mutex);
    // Again: libomp binds a thread of its own accord when it first sees it.
    if (self.crew == this) return bind(self);
    if (self.crew != nullptr) return;
    if (self.left != nullptr)
        self.left->forget(self);
    else
        arrive(self);
    add(self);
}

void Crew::join_when_there_is_room() noexcept {
    Membership& self = membership();
    Lock lock(crews_mutex);
    if (self.crew != nullptr) return;
    if (self.left != nullptr) self.left->forget(self);
    self.thread = ::gettid();
    self.before.reset();  // the runtime's: it is bound as whoever it was made by, who may be in a crew
    const auto may_enter = [this] { return closed_ || at_work() < held_.count(); };
    if (!may_enter()) wait_at_door(self, lock, may_enter);
    add(self);
}

void Crew::wait_at_door(Membership& self, Lock& lock, const std::function<bool()>& may_enter) noexcept {
    try {
        at_door_.push_back(&self);
    } catch (const std::bad_alloc&) {
        return;
    }
    // Already here: elsewhere it would have to compete for a CPU before it could go.
    bind(self.thread, place(cpu_for(self)));
    if (held_.empty()) wait_for_some(lock);  // those inside sleep, and have lent all
    (void)changed_.wait_for(lock, kLongestHeldUp, may_enter);
    std::erase(at_door_, &self);
}

void Crew::close() noexcept {
    {
        const std::lock_guard guard(crews_mutex);
        closed_ = true;
    }
    changed_.notify_all();
}

void Crew::arrive(Membership& self) noexcept {
    self.thread = ::gettid();
    if (self.before == nullptr) self.before.reset(new (std::nothrow) cpu_set_t);
    if (self.before == nullptr) return;
    CPU_ZERO(self.before.get());
    (void)sched_getaffinity(self.thread, sizeof(*self.before), self.before.get());
}

void Crew::bind_back(const Membership& member) const noexcept {
    if (!options_.bind) return;
    if (member.before != nullptr)
        (void)sched_setaffinity(member.thread, sizeof(*member.before), member.before.get());
    else
        (void)set_thread_affinity(options_.makers_affinity, member.thread);
}

void Crew::add(Membership& self) noexcept {
    try {
        members_.push_back(&self);
    } catch (const std::bad_alloc&) {
        return bind(self.thread, held_);
    }
    self.crew = this;
    self.kernels_own = members_.size() == 1;
    bind(self);
}

void Crew::leave() noexcept {
    Membership& self = membership();
    Lock lock(crews_mutex);
    if (self.crew != this) return;
    const bool comes_back = options_.runner.widens() && !self.kernels_own;
    remove(self);
    try {
        if (comes_back) left_.push_back(&self);
        self.left = comes_back ? this : nullptr;
    } catch (const std::bad_alloc&) {
    }
    if (self.left == nullptr) bind_back(self);
    if (!options_.runner.widens()) return;
    const bool others_sleep = blocked_ > 0;
    lock.unlock();
    changed_.notify_all();
    if (others_sleep) changed();
}

int Crew::at_work() const noexcept {
    return static_cast<int>(members_.size()) - blocked_;
}

int Crew::useful() const noexcept {
    if (blocked_ == 0) return most_;
    return std::min(most_, options_.runner.widens() ? at_work() + static_cast<int>(at_door_.size()) : busy_);
}

CpuSet Crew::cpus() const {
    const std::lock_guard guard(crews_mutex);
    return held_;
}

void Crew::bind(pid_t thread, const CpuSet& cpus) const noexcept {
    if (options_.bind && !cpus.empty()) (void)set_thread_affinity(cpus, thread);
}

/// -1: others have them all.
int Crew::cpu_for(const Membership& thread) const noexcept {
    for (const int cpu : held_)
        if (std::ranges::none_of(
                members_, [&](const Membership* other) { return other != &thread && other->cpu == cpu; }))
            return cpu;
    return -1;
}

/// First to its place: the system takes milliseconds to tell two threads on one CPU apart.
void Crew::bind(Membership& member) noexcept {
    if (member.cpu < 0) member.cpu = cpu_for(member);
    bind(member.thread, place(member.cpu));
    if (member.kernels_own && member.cpu >= 0) bind(member.thread, held_);
}

void Crew::bind_all() noexcept {
    for (Membership* member : members_)
        if (!held_.contains(member->cpu)) member->cpu = -1;
    for (Membership* member : members_) bind(*member);
    for (const Membership* thread : at_door_) bind(thread->thread, place(cpu_for(*thread)));
    for (const Membership* thread : left_) bind(thread->thread, held_);
}

/// A thread that was asleep when it was bound wakes up where it was.
void Crew::take_place_again() noexcept {
    if (Membership& self = membership(); self.crew == this) bind(self);
}

CpuSet Crew::part_of(const CpuSet& usable) const {
    CpuSet part = usable & wanted_;
    const int most = std::max(0, useful());
    while (part.count() > most) {
        const CpuSet others = part - held_;
        part.erase(others.empty() ? part.last() : others.last());
    }
    return part;
}

/// What it lacks. False: some CPU has so many waiting that this one is not among them.
bool Crew::request() noexcept {
    Lock lock(crews_mutex);
    const CpuSet wanted = wanted_;
    // Who sleeps asks when it wakes up.
    const int most = std::max(1, useful());
    lock.unlock();
    Outcome outcome = Outcome::kSuccess;
    quietly([&] {
        if (most >= wanted.count()) {
            outcome = component_->acquire_cpu_mask(wanted);
            return;
        }
        // Requests that wait are replaced, not added to.
        (void)component_->acquire_cpus(0);
        const CpuSet usable = component_->usable() & wanted;
        if (usable.count() < most) outcome = component_->acquire_cpus(most - usable.count(), wanted - usable);
    });
    return outcome != Outcome::kTooManyRequests;
}

/// The same, and uses what has come.
bool Crew::ask() noexcept {
    const bool waits = request();
    changed();
    return waits;
}

/// What may be used has changed, or what is wanted, or how many threads sleep. In any thread, without a lock.
void Crew::changed() noexcept {
    while (adjust()) (void)request();
}

/// True: the kernel has come to need what was given away meanwhile.
bool Crew::adjust() noexcept {
    Lock lock(crews_mutex);
    const CpuSet usable = component_->usable();
    const CpuSet now = part_of(usable);
    // A kernel cannot be stopped: it keeps its last CPUs until it has others. One whose threads all sleep
    // needs none.
    const bool sleeps = useful() <= 0, stays = now.empty() && !sleeps;
    const bool lost = !sleeps && !held_.empty() && (stays || !now.contains(held_));
    if (!stays && held_ != now) {
        held_ = now;
        bind_all();
    }
    const CpuSet held = held_;
    const CpuSet lend = usable - now - held;
    lock.unlock();
    changed_.notify_all();
    if (sleeps) quietly([this] { (void)component_->acquire_cpus(0); });
    for (const int cpu : component_->to_return() - held) quietly([&] { (void)component_->return_cpu(cpu); });
    if (!lend.empty()) quietly([&] { (void)component_->lend_cpu_mask(lend); });
    // Whoever took them may be done before this kernel is, and it may have others.
    if (lost) (void)request();
    if (!sleeps && lend.empty()) return false;
    lock.lock();
    return (sleeps && useful() > 0) || held_.intersects(lend);
}

void Crew::wait_for_some(Lock& lock) {
    while (held_.empty() && !closed_) {
        lock.unlock();
        const bool waits = ask();
        lock.lock();
        const auto some = [this] { return !held_.empty() || closed_; };
        if (waits)
            changed_.wait(lock, some);
        else
            (void)changed_.wait_for(lock, kAskAgain, some);
    }
}

void Crew::gather() {
    {
        const std::lock_guard guard(crews_mutex);
        component_.emplace(options_.exchange, options_.name, CpuSet());
    }
    (void)component_->on_enable_cpu([this](int) { changed(); });
    (void)component_->on_disable_cpu([this](int) { changed(); });
    Lock lock(crews_mutex);
    wait_for_some(lock);
    (void)changed_.wait_for(lock, kGather, [this] { return held_ == wanted_; });
    take_place_again();
}

int Crew::settle() {
    Lock lock(crews_mutex);
    if (options_.runner.widens()) return wanted_.count();
    const int width = most_ = std::max(1, held_.count());
    lock.unlock();
    // Those that it waits for, and those that came just now.
    quietly([this] { (void)component_->acquire_cpus(0); });
    changed();
    return width;
}

void Crew::resize() {
    if (options_.runner.widens()) return;
    Lock lock(crews_mutex);
    const bool asks = std::exchange(most_, CpuSet::kMaxCpus) < wanted_.count();
    lock.unlock();
    if (asks) ask();
    options_.runner.resize(std::max(1, cpus().count()));
}

void Crew::confine(const CpuSet& wanted) {
    Lock lock(crews_mutex);
    if (wanted == wanted_) return;
    wanted_ = wanted;
    const bool has_component = component_.has_value(), asks = useful() > 0;
    lock.unlock();
    if (!has_component) return;
    if (asks)
        ask();
    else
        changed();
}

void Crew::without_cpus(const std::function<void()>& sleep) {
    // First, since it may throw: there can be no thread for what this one waits for.
    options_.watcher.kernel_blocks(true);
    Lock lock(crews_mutex);
    ++blocked_;
    busy_ = options_.runner.others(static_cast<int>(members_.size())) + 1 - blocked_;
    lock.unlock();
    changed();
    std::exception_ptr failure;
    try {
        sleep();
    } catch (...) {
        failure = std::current_exception();
    }
    options_.watcher.kernel_blocks(false);
    lock.lock();
    --blocked_;
    ++busy_;
    lock.unlock();
    ask();
    lock.lock();
    wait_for_some(lock);
    take_place_again();
    if (failure) std::rethrow_exception(failure);
}

void sleep_in_kernel(const std::function<void()>& sleep) {
    if (Crew* const crew = Crew::here(); crew != nullptr)
        crew->without_cpus(sleep);
    else
        sleep();
}

}  // namespace heddle
