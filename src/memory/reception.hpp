// Reception: which thread of a rank takes packets out of its rings: the mesh's own, or one that waits for an
// answer, and one at a time.
//
// The own thread sleeps while nobody takes, and then all rings say so, so that who sends wakes it. Another
// thread takes the turn only where it is free, and no ring says that anybody sleeps meanwhile; it gives the
// turn back by saying so again and looking once more: what came before that it tells the own thread of, what
// comes after does it itself. An own thread that is awake and sees others at it leaves all to them.
//
// Rings have take_all(), true where there was something; all_empty(), which any thread may ask; look_all()
// and sleep_all(), which is false where something is there already. Any thread.
#pragma once

#include <atomic>
#include <mutex>

namespace heddle::memory {

template <class Rings>
class Reception {
  public:
    explicit Reception(Rings& rings) : rings_(rings) {}

    /// By the own thread, which has been woken: takes what there is, and returns when it may sleep. first()
    /// is called once in between, keep(found) looks for more for as long as it likes.
    template <class First, class Keep>
    void receive(const First& first, const Keep& keep) {
        std::unique_lock turn(turn_);
        rings_.look_all();
        bool some = rings_.take_all();
        first();
        while (some || !rings_.sleep_all()) {
            turn.unlock();
            keep([&] { return others_look() || !rings_.all_empty(); });
            if (others_look()) return;
            turn.lock();
            rings_.look_all();
            some = rings_.take_all();
        }
    }

    /// By another thread. True: it has the turn, and may take, until end(). Never blocks.
    [[nodiscard]] bool begin() {
        if (!turn_.try_lock()) return false;
        others_look_.store(true, std::memory_order_relaxed);
        rings_.look_all();
        return true;
    }
    /// False: the own thread is to be woken.
    [[nodiscard]] bool end() {
        others_look_.store(false, std::memory_order_relaxed);
        const bool nothing_left = rings_.sleep_all();
        turn_.unlock();
        return nothing_left;
    }

  private:
    [[nodiscard]] bool others_look() const noexcept { return others_look_.load(std::memory_order_relaxed); }

    Rings& rings_;
    std::mutex turn_;
    /// Written by who has the turn. The own thread may read it late: it was true after that thread had the
    /// turn, so end() has said to the rings what they have to say, or will.
    std::atomic<bool> others_look_{false};
};

}  // namespace heddle::memory
