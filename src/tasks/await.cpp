#include "heddle/await.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "cores/futex.hpp"
#include "heddle/error.hpp"
#include "tasks/frame.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

/// A thread outside of tasks looks so often whether the descriptor was closed.
constexpr Nanoseconds kLookEvery = std::chrono::milliseconds(100);

Time now() {
    return SteadyClock().now();
}

Error not_open(int fd, const char* when) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("descriptor {} {}: keep it open until nobody waits for it; shutdown(2) of a socket "
                        "wakes those who do",
                        fd, when)};
}

/// Waits in the calling thread. Zero: looks.
bool is_ready(int fd, short events, Nanoseconds patience) {
    pollfd one{fd, events, 0};
    const timespec limit = timespec_of(patience);
    const int count = fd < 0 ? -1 : ::ppoll(&one, 1, &limit, nullptr);
    if (fd < 0 || (count > 0 && (one.revents & POLLNVAL) != 0)) throw not_open(fd, "is not open");
    if (count < 0 && errno != EINTR && errno != EAGAIN)
        throw Error(ErrorCode::kSystem, fmt::format("cannot wait for descriptor {}: poll failed", fd));
    return count > 0;
}

Readiness wait_here(int fd, short events, Deadline deadline) {
    while (now() < deadline)
        if (is_ready(fd, events, std::clamp<Nanoseconds>(deadline - now(), {}, kLookEvery)))
            return Readiness::kReady;
    return Readiness::kTimeout;
}

Readiness wait(int fd, short events, Deadline deadline) {
    if (is_ready(fd, events, {})) return Readiness::kReady;
    const TaskFrame* frame = current_frame();
    if (frame == nullptr) return wait_here(fd, events, deadline);
    if (deadline <= now()) return Readiness::kTimeout;
    // poll's and epoll's bits are the same.
    switch (frame->runtime->reactor.wait(fd, static_cast<uint32_t>(events), deadline)) {
        case Reactor::Outcome::kReady:
            return Readiness::kReady;
        case Reactor::Outcome::kTimeout:
            return Readiness::kTimeout;
        case Reactor::Outcome::kClosed:
            break;
    }
    throw not_open(fd, "was closed while a task waited for it");
}

}  // namespace

void sleep_until(Deadline time) {
    if (time == Deadline::max())
        throw Error(
            ErrorCode::kInvalidArgument,
            "a sleep until a time that never comes has no end: wait on a BlockCondition for what shall "
            "end it");
    if (const TaskFrame* frame = current_frame()) {
        if (time > now()) frame->runtime->reactor.sleep_until(time);
        return;
    }
    const timespec until = timespec_of(time.time_since_epoch());
    while (time > now()) (void)::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

void sleep_for(std::chrono::nanoseconds duration) {
    if (duration <= Nanoseconds::zero()) return;
    const Time start = now();
    sleep_until(duration > Time::max() - start ? Time::max() : start + duration);
}

void wait_readable(int fd) {
    (void)wait(fd, POLLIN, Deadline::max());
}
void wait_writable(int fd) {
    (void)wait(fd, POLLOUT, Deadline::max());
}
Readiness wait_readable(int fd, Deadline deadline) {
    return wait(fd, POLLIN, deadline);
}
Readiness wait_writable(int fd, Deadline deadline) {
    return wait(fd, POLLOUT, deadline);
}

}  // namespace heddle
