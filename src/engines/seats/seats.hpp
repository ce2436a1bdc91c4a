// Seats: the right of a foreign runtime's threads to run, each on a CPU of its own.
//
// OpenMP and oneTBB bring their own threads; this says which of them may run tasks, and where. There are as
// many seats as CPUs that the provider lets the engine use, and at most as many as it has workers. A thread
// with a seat is bound to its CPU. One without waits, asleep, and that is what the engine's demand is made
// of, with those whose seat was taken between two tasks; other CPUs that nobody sits on are given back. One
// that is asked back is left after the task in hand.
//
// One for an engine, which compiles it into its plug-in. Any thread; each Seat is for the thread that it was
// made for. Nothing outlives the process.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "base/clock.hpp"
#include "tasks/engine.hpp"

namespace heddle {

class Seats {
  public:
    class Seat {
      public:
        /// The CPU was asked back, or others wait for it: end the task in hand, then end().
        [[nodiscard]] bool should_leave() const noexcept { return ordered_.load(std::memory_order_relaxed); }
        /// Where its thread sits. By that thread, while it does.
        [[nodiscard]] int cpu() const noexcept { return cpu_; }

      private:
        friend class Seats;
        enum class State : uint8_t { kNone, kIdle, kBusy };
        // kIdle <-> kBusy by its thread without the lock; all else under it. kIdle -> kNone takes the seat
        // from a thread that does nothing. seq_cst together with ordered_: who orders writes that and looks
        // here, who becomes idle writes this and looks there.
        std::atomic<State> state_{State::kNone};
        std::atomic<bool> ordered_{false};
        std::atomic<bool> used_{false};  // since clear_idle() looked
        int cpu_ = -1;                   // where it sits; -1 with kNone
        bool hurry_ = false;             // waits, with a task in hand
        bool missed_ = false;            // see take_idle()
        int bound_to_ = -1;
        pthread_t thread_{};
        cpu_set_t before_{};  // where the thread could run before
        std::condition_variable wake_;
        std::list<std::unique_ptr<Seat>>::iterator place_;
    };

    /// Starts the provider, which must outlive it.
    explicit Seats(const EngineOptions& options);
    /// All threads have left or parted.
    ~Seats();
    Seats(const Seats&) = delete;
    Seats& operator=(const Seats&) = delete;

    /// The calling thread comes, without a CPU. Throws std::bad_alloc.
    [[nodiscard]] Seat& enter();
    /// It goes, and is bound as before.
    void leave(Seat& seat) noexcept;

    /// Waits for a CPU to look for tasks on. False: nothing is to be run any more. Throws std::bad_alloc.
    [[nodiscard]] bool sit_down(Seat& seat) { return sit_down(seat, false, nullptr); }
    /// Before a task that the thread has in hand: as sit_down(), but takes the seat of one who does nothing,
    /// and after a millisecond asks somebody to make room. From then on `give_up`, if given, is asked every
    /// millisecond, under the lock: true, the thread has better things to do than to wait, and gets no seat.
    /// Where there is no memory it waits until there is.
    [[nodiscard]] bool begin(Seat& seat, const std::function<bool()>& give_up = nullptr) {
        seat.used_.store(true, std::memory_order_relaxed);
        auto idle = Seat::State::kIdle;
        return seat.state_.compare_exchange_strong(idle, Seat::State::kBusy, std::memory_order_seq_cst) ||
               sit_down(seat, true, give_up);
    }
    /// Before tasks that others could run as well: as begin(), where it need not wait. The thread binds
    /// itself.
    [[nodiscard]] bool begin_if_free(Seat& seat) noexcept;
    /// After a task. False: the seat is gone.
    bool end(Seat& seat) noexcept {
        seat.state_.store(Seat::State::kIdle, std::memory_order_seq_cst);
        return !seat.ordered_.load(std::memory_order_seq_cst) || look(seat);
    }
    /// Gives the seat up, for a thread that takes seats of others too: it is theirs to bind from now on.
    void part(Seat& seat) noexcept;
    /// Takes the seats of those who have done nothing since the last call. True: some have one left.
    bool clear_idle() noexcept;

    /// No seat is given any more; who waits for one is told so. To be called when no tasks are left.
    void stop() noexcept;

  private:
    using Lock = std::unique_lock<std::mutex>;
    using State = Seat::State;

    [[nodiscard]] bool sit_down(Seat& seat, bool hurry, const std::function<bool()>& give_up);
    [[nodiscard]] bool stand_in_line(Seat& seat) noexcept;
    [[nodiscard]] bool look(Seat& seat) noexcept;
    void provider_changed();
    void read_usable();
    /// Takes the CPU from a seat that is not busy.
    void vacate(Seat& seat);
    void forget_missed(Seat& seat) noexcept;
    void forget_all_missed() noexcept;
    [[nodiscard]] bool take_idle(bool used);
    void order_one();
    void settle();
    /// CPUs beside those that are sat on.
    [[nodiscard]] int wanted_more() const;
    void tell_provider(Lock& lock);
    void bind(Seat& seat, int cpu) noexcept;
    [[nodiscard]] int choose(const CpuSet& free) const;

    EngineHost& host_;
    CpuProvider& provider_;
    const bool bind_;
    const int most_;

    std::mutex mutex_;  // for all below
    std::list<std::unique_ptr<Seat>> seats_;
    std::deque<Seat*> waiting_;               // first come, first served
    CpuSet granted_;                          // may be sat on
    CpuSet occupied_;                         // is sat on
    CpuSet lost_;                             // of these, those that were asked back
    CpuSet returned_, given_back_, parting_;  // to be told to the provider; being told
    int missed_count_ = 0;                    // seats with missed_
    Time taken_at_{};                         // when the latest seat was taken from one without a task
    int told_demand_ = 0;
    bool telling_ = false;
    bool stopped_ = false;
    std::condition_variable quiet_;  // telling_ fell
};

}  // namespace heddle
