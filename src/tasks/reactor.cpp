#include "tasks/reactor.hpp"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "base/signals_blocked.hpp"
#include "heddle/error.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

constexpr Nanoseconds kLookEvery = std::chrono::milliseconds(100);
/// Looking for closed descriptors takes at most one part in so many of a CPU.
constexpr int kLookShare = 100;
/// In the place of a descriptor's number and generation.
constexpr uint64_t kTimerEvent = ~uint64_t{0};

uint64_t name_of(int fd, uint32_t generation) {
    return uint64_t{generation} << 32 | static_cast<uint32_t>(fd);
}

Error cannot_start(const char* what, int failure) {
    return {
        ErrorCode::kLimit,
        fmt::format("a task cannot wait for a time or a descriptor: {}: {}. Raise the limit of open files "
                    "(ulimit -n) or of threads (ulimit -u)",
                    what, std::strerror(failure))};
}

}  // namespace

void Reactor::Woken::add(Wait& wait, Outcome outcome) noexcept {
    wait.outcome = outcome;
    wait.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &wait;
    last_ = &wait;
}

void Reactor::Woken::wake() noexcept {
    // Who is woken may be gone at once.
    while (first_ != nullptr) std::exchange(first_, first_->next)->waiter->wake();
}

void Reactor::stop() noexcept {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard guard(mutex_);
        stop_ = true;
        (void)os_.timer_set(timer_.get(), SteadyClock().now());
    }
    thread_.join();
    stop_ = false;
    set_to_ = Time::max();
}

/// Under the mutex, before a wait that may be the first.
void Reactor::start() {
    if (thread_.joinable()) return;
    Descriptor epoll(os_.epoll_create());
    if (!epoll.valid()) throw cannot_start("epoll_create", -epoll.get());
    Descriptor timer(os_.timer_create());
    if (!timer.valid()) throw cannot_start("timerfd_create", -timer.get());
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kTimerEvent;
    if (const int failure = os_.epoll_control(epoll.get(), EPOLL_CTL_ADD, timer.get(), &event); failure < 0)
        throw cannot_start("epoll_ctl", -failure);
    epoll_ = std::move(epoll);
    timer_ = std::move(timer);
    const SignalsBlocked blocked;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
        throw cannot_start("a thread", error.code().value());
    }
}

void Reactor::sleep_until(Time time) {
    Wait self;
    self.time = time;
    wait(self, Wakes::kTimer);
}

Reactor::Outcome Reactor::wait(int fd, uint32_t events, Time deadline) {
    Wait self;
    self.time = deadline;
    self.fd = fd;
    self.events = events;
    wait(self, Wakes::kAnybody);
    return self.outcome;
}

void Reactor::wait(Wait& self, Wakes by) {
    // What may fail for want of memory comes before the pause.
    try {
        const std::lock_guard guard(mutex_);
        start();
        times_.reserve(users_ + 1);
        if (self.fd >= 0) ++watches_.try_emplace(self.fd).first->second.users;
        ++users_;
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::kLimit, "a task cannot wait: there is no memory to remember it");
    }
    int failure = 0;
    const auto telling = [&](Waiter& waiter) noexcept {
        Woken others;
        int refused;  // once told, nothing of the waiter's may be looked at
        {
            const std::lock_guard guard(mutex_);
            self.waiter = &waiter;
            refused = publish(self, others);
            if (refused < 0) failure = refused;
        }
        others.wake();
        return refused == 0;
    };
    try {
        wait_for_wake(telling, by);
    } catch (...) {
        leave(self.fd);
        throw;
    }
    leave(self.fd);
    if (failure == -EBADF) self.outcome = Outcome::kClosed;
    if (failure < 0 && failure != -EBADF)
        throw Error(failure == -ENOSPC || failure == -ENOMEM ? ErrorCode::kLimit : ErrorCode::kSystem,
                    fmt::format("a task cannot wait for descriptor {}: epoll_ctl: {}{}", self.fd,
                                std::strerror(-failure),
                                failure == -ENOSPC ? ": raise fs.epoll.max_user_watches" : ""));
}

void Reactor::leave(int fd) noexcept {
    const std::lock_guard guard(mutex_);
    --users_;
    if (fd < 0) return;
    const auto found = watches_.find(fd);
    if (--found->second.users > 0) return;
    if (found->second.added) {
        // Closed meanwhile, it is not there any more.
        epoll_event event{};
        (void)os_.epoll_control(epoll_.get(), EPOLL_CTL_DEL, fd, &event);
    }
    watches_.erase(found);
    if (watches_.empty()) next_look_ = Time::max();
}

/// Enters one that is about to wait. Less than 0: it cannot.
int Reactor::publish(Wait& self, Woken& woken) noexcept {
    if (self.fd >= 0) {
        Watch& watch = watches_.find(self.fd)->second;
        self.next = std::exchange(watch.first, &self);
        int failure = arm(self.fd, watch);
        if (failure < 0) watch.first = std::exchange(self.next, nullptr);
        if (failure == -EBADF && watch.added) {
            // What the others wait for was closed; the number may be another file's by now.
            closed(watch, woken);
            watch.first = &self;
            failure = arm(self.fd, watch);
            if (failure < 0) watch.first = nullptr;
        }
        if (failure < 0) return failure;
        if (next_look_ == Time::max()) next_look_ = SteadyClock().now() + kLookEvery;
    }
    if (self.time != Time::max()) times_.add(self);
    set_timer();
    return 0;
}

/// For what those in its list want. -EBADF: it was closed, or is another file by now.
int Reactor::arm(int fd, Watch& watch) noexcept {
    epoll_event event{};
    for (const Wait* wait = watch.first; wait != nullptr; wait = wait->next) event.events |= wait->events;
    event.events |= EPOLLONESHOT;
    if (watch.added) {
        event.data.u64 = name_of(fd, watch.generation);
        const int failure = os_.epoll_control(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
        return failure == -ENOENT ? -EBADF : failure;
    }
    watch.generation = ++last_generation_;
    event.data.u64 = name_of(fd, watch.generation);
    const int failure = os_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    watch.added = failure == 0;
    return failure;
}

/// To the earliest thing to be done.
void Reactor::set_timer() noexcept {
    const Time earliest = std::min(times_.earliest(), next_look_);
    if (earliest == set_to_) return;
    set_to_ = earliest;
    (void)os_.timer_set(timer_.get(), earliest);
}

void Reactor::run() noexcept {
    // Its maker may have been bound to one CPU. What the system refuses is no reason to stop.
    if (!cpus_.empty()) (void)set_thread_affinity(cpus_);
    epoll_event events[64];
    while (true) {
        const int count = os_.epoll_wait(epoll_.get(), events, std::size(events), {});
        Woken woken;
        {
            const std::lock_guard guard(mutex_);
            if (stop_) return;
            const Time now = SteadyClock().now();
            for (int i = 0; i < count; ++i) {
                if (events[i].data.u64 == kTimerEvent)
                    set_to_ = Time::min();  // setting it anew makes it unreadable again
                else
                    ready(events[i], woken);
            }
            expire(now, woken);
            if (now >= next_look_) look_for_closed(now, woken);
            set_timer();
        }
        woken.wake();
    }
}

void Reactor::ready(const epoll_event& event, Woken& woken) noexcept {
    const auto fd = static_cast<int>(static_cast<uint32_t>(event.data.u64));
    const auto found = watches_.find(fd);
    if (found == watches_.end() || name_of(fd, found->second.generation) != event.data.u64) return;
    Watch& watch = found->second;
    // After an error or an end neither reading nor writing blocks.
    const uint32_t all = event.events & (EPOLLERR | EPOLLHUP) ? ~uint32_t{0} : event.events;
    take(watch, all, Outcome::kReady, woken);
    if (watch.first != nullptr && arm(fd, watch) == -EBADF) closed(watch, woken);
}

void Reactor::expire(Time now, Woken& woken) noexcept {
    while (Timer* timer = times_.pop(now)) {
        Wait& wait = static_cast<Wait&>(*timer);
        if (wait.fd >= 0) {
            // Its watch stays armed for it: an event that nobody wants does no harm.
            Wait** link = &watches_.find(wait.fd)->second.first;
            while (*link != &wait) link = &(*link)->next;
            *link = wait.next;
        }
        woken.add(wait, Outcome::kTimeout);
    }
}

void Reactor::look_for_closed(Time now, Woken& woken) noexcept {
    for (auto& [fd, watch] : watches_)
        if (watch.first != nullptr && arm(fd, watch) == -EBADF) closed(watch, woken);
    const Time after = SteadyClock().now();
    next_look_ = after + std::max(kLookEvery, kLookShare * (after - now));
}

/// Takes those out of the list who want one of these.
void Reactor::take(Watch& watch, uint32_t events, Outcome outcome, Woken& woken) noexcept {
    for (Wait** link = &watch.first; *link != nullptr;) {
        Wait& wait = **link;
        if ((wait.events & events) == 0) {
            link = &wait.next;
            continue;
        }
        *link = wait.next;
        times_.remove(wait);
        woken.add(wait, outcome);
    }
}

void Reactor::closed(Watch& watch, Woken& woken) noexcept {
    take(watch, ~uint32_t{0}, Outcome::kClosed, woken);
    watch.added = false;
}

}  // namespace heddle
