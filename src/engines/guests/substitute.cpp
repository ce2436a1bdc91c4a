// The side of a GuestEngine that threads of the program's see.
#include <algorithm>

#include "base/spin_pause.hpp"
#include "engines/guests/guest_thread.hpp"
#include "engines/native/lane_counts.hpp"
#include "tasks/producer_rest.hpp"

namespace heddle {
namespace {

/// Where nobody could be told of something: how long until who waits looks again.
constexpr Nanoseconds kRetry = std::chrono::microseconds(100);

}  // namespace

/// The calling thread is one of those that may have a seat.
class GuestEngine::Substitute {
  public:
    /// Throws std::bad_alloc.
    explicit Substitute(GuestEngine& engine)
        : engine_(engine), seat_(engine.seats_.enter()), before_(here()) {
        here() = {};
        here().engine = engine.id_;
        here().seat = &seat_;
        here().substitute = true;
        here().depth = 1;
    }
    ~Substitute() {
        here() = before_;
        engine_.seats_.leave(seat_);
    }
    Substitute(const Substitute&) = delete;
    Substitute& operator=(const Substitute&) = delete;

    [[nodiscard]] Seats::Seat& seat() const noexcept { return seat_; }

  private:
    GuestEngine& engine_;
    Seats::Seat& seat_;
    const Here before_;
};

void GuestEngine::wait_until(Lane& lane, const std::function<bool()>& reached) {
    host_.flush(lane);
    // In a service, which may be all that the engine's one thread is at.
    while (is_between_tasks() && !reached()) {
        const uint64_t before = lane.ran.load(std::memory_order_relaxed);
        answer_call();
        if (lane.ran.load(std::memory_order_relaxed) == before && !reached()) news_.nap(kRetry);
    }
    if (!reached()) (void)stand_in(lane, [&] { return !reached(); });
    while (true) {
        news_.wait([&] { return reached() || call_failed_.load(); });
        if (reached()) return;
        news_.nap(kRetry);
        call_failed_.store(false);
        if (has_queued()) call();
    }
}

bool GuestEngine::help(Lane& lane, uint64_t wanted) noexcept {
    if (host_.frame() != nullptr && help_in_task(lane)) return true;
    const uint64_t before = lane.ran.load(std::memory_order_relaxed);
    const auto more = [&] { return lane.ran.load(std::memory_order_relaxed) - before < wanted; };
    if (stand_in(lane, more)) return true;
    // What is coarse is for the runtime's threads, which it gives time.
    return rest_while(news_, wanted, [this] { return ran_in(host_.all_lanes()); });
}

bool GuestEngine::stand_in(Lane& lane, const std::function<bool()>& more) noexcept {
    if (!options_.callers_work || !are_fine_.load(std::memory_order_relaxed) || !has_queued()) return false;
    if (host_.frame() != nullptr || here().engine == id_ || has_substitute_.exchange(true)) return false;
    bool served = false;
    try {
        const Substitute substitute(*this);
        // A runtime may have another of its threads do it, where it has no place for this one.
        const auto serve = [&] { served = here().substitute && serve_as_substitute(lane, more); };
        if (seats_.begin_if_free(substitute.seat()))
            (void)host_.stay_on({substitute.seat().cpu()}, [&] { as_on_its_threads(serve); });
    } catch (...) {
        // Without memory it stays outside.
    }
    has_substitute_.store(false);
    if (has_queued()) call();
    return served;
}

bool GuestEngine::serve_as_substitute(Lane& lane, const std::function<bool()>& more) noexcept {
    const Seats::Seat& seat = *here().seat;
    if (!serve_some(lane, kProbe)) return false;
    const auto has_more = [&] {
        if (!more() || seat.should_leave()) return false;
        const Time until = SteadyClock().now() + kLinger;
        while (!has_queued()) {
            spin_pause();
            if (!more() || seat.should_leave() || SteadyClock().now() >= until) return false;
        }
        return true;
    };
    while (has_more() && serve_some(lane, kLookEvery)) {
    }
    return true;
}

bool GuestEngine::serve_some(Lane& lane, int most) noexcept {
    Here& self = here();
    const Time since = SteadyClock().now();
    const uint64_t before = lane.ran.load(std::memory_order_relaxed);
    uint64_t served = 0;
    self.left = most;
    while (self.left > 0 && has_queued() && !self.seat->should_leave() && serve_one(lane)) ++served;
    host_.flush(lane);
    // Those that were woken, and go on, are not counted as run again.
    const uint64_t tasks = std::max(served, lane.ran.load(std::memory_order_relaxed) - before);
    if (!Pace::coarse(tasks, SteadyClock().now() - since, fine())) return tasks > 0 || !has_queued();
    tasks_are_coarse();
    return false;
}

}  // namespace heddle
