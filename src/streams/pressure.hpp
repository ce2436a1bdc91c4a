// Pressure: bounded queues without deadlock.
//
// Who brings a record to a full queue waits until it has emptied. Where all that could empty a queue waits
// itself, the smallest of the full ones is let grow, those where records wait for their order before the
// others (T. M. Parks, Bounded Scheduling of Process Networks, 1995, section 4.2): so memory stays bounded
// wherever the network allows it. So it is where some wait for each other in a circle, whatever others do
// (M. Geilen and T. Basten, Requirements on the Execution of Kahn Process Networks, 2003). Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "heddle/pause.hpp"

namespace heddle::streams {

struct Path;

class Pressure {
  public:
    /// A queue that can be full. Its owner calls emptied() when it is half empty.
    struct Gauge {
        std::atomic<size_t> bound{0};    ///< records; grows, unless it is kNeverGrows
        std::atomic<size_t> waiting{0};  ///< that wait for it
        /// Who empties it though he neither begins nor ends (own_number(); 0: nobody): unless he waits as
        /// well, it need not grow, nor what waits behind it.
        std::atomic<uintptr_t> outside{0};
        bool counts = true;          ///< that it grew is told, and it may not grow beyond `most`
        const Path* path = nullptr;  ///< whose it is, for messages
    };

    static constexpr size_t kNeverGrows = SIZE_MAX;
    /// Queues that nobody but one empties; null: none.
    using Held = std::array<const Gauge*, 3>;

    /// Somebody who empties queues begins, and ends: once, whatever he does in between.
    void begin() { active_.fetch_add(1, std::memory_order_relaxed); }
    void end();
    /// In between: until the queue has been emptied, or its bound has grown; at once where it is full no
    /// more. `held`: who waits is the one that empties them. False: nobody waits any more (stop()). Throws
    /// kLimit where there is no memory to pause the task; it has begun as before then.
    bool wait(Gauge& full, const std::function<bool()>& still_full, const Held& held = {});
    void emptied(Gauge& gauge);
    /// Nobody waits any more, now or later: what would be waited for is dropped. Not in on_most.
    void stop();
    /// Nobody has begun or waits.
    [[nodiscard]] bool quiet();
    /// Until that has been so. Throws kLimit as wait() does.
    void wait_until_quiet();
    /// Whether somebody is at work who has not begun; he begins then, and ends when he is done. Any thread,
    /// under no lock of this. Set before somebody begins.
    std::function<bool()> uncounted;
    /// Called whenever that has become so. Set before somebody begins.
    std::function<void()> on_quiet;

    /// A bound that counts and would have to grow beyond this stays: `on_most` is called, under a lock, and
    /// then nobody waits any more, as by stop(). Set before somebody begins.
    size_t most = SIZE_MAX;
    std::function<void(const Gauge&)> on_most;

    /// How often a bound had to grow.
    [[nodiscard]] size_t growths() const { return growths_.load(std::memory_order_relaxed); }

  private:
    struct Waiter {
        Gauge* full;
        uintptr_t who;  ///< own_number()
        const std::function<bool()>& still_full;
        Held held;
        BlockCondition goes_on;
        bool stopped = false;
    };
    /// Under the mutex: those who wait for it are counted as active again, and go on.
    void release(Gauge& gauge);
    void release_all();
    /// Under the mutex: somebody outside will empty a queue that one of those who wait found full.
    [[nodiscard]] bool is_emptied_outside() const;
    // Under the mutex, and without memory for it:
    /// Who waits, and alone could empty this one; null: nobody who waits.
    [[nodiscard]] Waiter* holder_of(const Gauge& queue) const;
    /// For somebody who waits, and so on, for who waits for this one.
    [[nodiscard]] bool waits_for_itself(const Waiter& one) const;
    /// Where those of the circle that this one is in wait for each other, or all (null): where one of their
    /// queues has room, which nobody was told, they go on with that; else the smallest bound doubles, of
    /// those that do not count before others.
    void grow(Waiter* circle);
    void tell_of_quiet();

    std::atomic<size_t> active_{0};
    std::atomic<size_t> growths_{0};
    /// As many as are in waiters_; written under the mutex. A waiter counts before it ends, so that the last
    /// one to end sees it.
    std::atomic<size_t> waiter_count_{0};
    std::mutex mutex_;
    bool stopped_ = false;  ///< under the mutex
    std::vector<Waiter*> waiters_;
    /// As many as are in settling_, in the same way.
    std::atomic<size_t> settling_count_{0};
    std::vector<BlockCondition*> settling_;  ///< wait until it is quiet; under the mutex
};

}  // namespace heddle::streams
