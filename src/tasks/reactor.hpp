// Reactor: wakes tasks at a time, or when a descriptor is ready.
//
// One for a runtime, which stops it before its engine. One thread of its own, made with the first wait,
// sleeps in epoll_wait(2); the earliest time of all is in one timerfd, set by whoever comes with an earlier
// one. So a wait costs no thread and no polling, and a reactor that is not used costs nothing.
//
// A descriptor is armed for one event at a time (EPOLLONESHOT), for what those who wait for it want together.
// epoll forgets descriptors that are closed, in silence. So the armed ones are armed anew ten times a second:
// that fails for one that was closed, or is another file now, and who waits is told. Any thread; nothing of
// it outlives the process.
#pragma once

#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/os.hpp"
#include "heddle/cpu_set.hpp"
#include "tasks/timer_heap.hpp"
#include "tasks/waiter.hpp"

namespace heddle {

class Reactor {
  public:
    enum class Outcome { kReady, kTimeout, kClosed };

    /// Its thread keeps to these CPUs; none: it is not bound.
    explicit Reactor(CpuSet cpus, Os& os = Os::system()) : cpus_(std::move(cpus)), os_(os) {}
    /// Nobody waits.
    ~Reactor() { stop(); }
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    /// Ends the thread; a later wait makes another. Nobody waits.
    void stop() noexcept;

    /// In a task: pauses it. Throws kLimit where the system has no descriptor, thread or memory for it.
    void sleep_until(Time time);
    /// `events` as epoll's, EPOLLIN or EPOLLOUT. Throws as sleep_until(), as wait_for_wake(),
    /// kInvalidArgument for a descriptor that is not open, kSystem where epoll refuses it.
    [[nodiscard]] Outcome wait(int fd, uint32_t events, Time deadline);

  private:
    /// One that waits, on its stack; in the heap where it has a time, in the list of its watch where it has a
    /// descriptor.
    struct Wait : Timer {
        int fd = -1;
        uint32_t events = 0;
        Wait* next = nullptr;
        Waiter* waiter = nullptr;
        Outcome outcome = Outcome::kReady;
    };
    /// Those to be woken when the mutex is free again, first come first served.
    class Woken {
      public:
        void add(Wait& wait, Outcome outcome) noexcept;
        void wake() noexcept;

      private:
        Wait *first_ = nullptr, *last_ = nullptr;
    };
    /// A descriptor that somebody waits for.
    struct Watch {
        Wait* first = nullptr;
        size_t users = 0;         // in wait(), whether or not they are in the list
        uint32_t generation = 0;  // tells events of an earlier watch of the same number apart
        bool added = false;       // to epoll
    };

    void wait(Wait& self, Wakes by);
    void start();
    void run() noexcept;
    [[nodiscard]] int publish(Wait& self, Woken& woken) noexcept;
    [[nodiscard]] int arm(int fd, Watch& watch) noexcept;
    void leave(int fd) noexcept;
    void set_timer() noexcept;

    // What has come to pass, and who is to be woken for it.
    void ready(const epoll_event& event, Woken& woken) noexcept;
    void expire(Time now, Woken& woken) noexcept;
    void look_for_closed(Time now, Woken& woken) noexcept;
    void take(Watch& watch, uint32_t events, Outcome outcome, Woken& woken) noexcept;
    void closed(Watch& watch, Woken& woken) noexcept;

    const CpuSet cpus_;
    Os& os_;
    std::mutex mutex_;  // for all below
    Descriptor epoll_, timer_;
    TimerHeap times_;
    size_t users_ = 0;  // in wait()
    std::unordered_map<int, Watch> watches_;
    uint32_t last_generation_ = 0;
    Time next_look_ = Time::max();  // for closed ones; never while there are no watches
    Time set_to_ = Time::max();     // the timerfd
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace heddle
