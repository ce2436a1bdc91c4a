// PushersBeside: those who push into a network while somebody else sits (PushSeat), each with a flow of its
// own; the flows are kept for who comes next. Any thread or task.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <mutex>

#include "cores/short_lock.hpp"
#include "streams/flow.hpp"

namespace heddle::streams {

class PushersBeside {
    struct Entry {
        uintptr_t who = 0;
        Flow flow{};
    };

  public:
    /// While it lives, `who` pushes. Throws std::bad_alloc.
    class Pusher {
      public:
        Pusher(PushersBeside& all, uintptr_t who) : all_(all), own_(all.enter(who)) {}
        ~Pusher() {
            own_->flow.let_go();
            const std::lock_guard guard(all_.lock_);
            all_.idle_.splice(all_.idle_.begin(), all_.pushing_, own_);
        }
        Pusher(const Pusher&) = delete;
        Pusher& operator=(const Pusher&) = delete;
        [[nodiscard]] Flow& flow() { return own_->flow; }

      private:
        PushersBeside& all_;
        const std::list<Entry>::iterator own_;
    };
    [[nodiscard]] bool contains(uintptr_t who) {
        const std::lock_guard guard(lock_);
        return std::ranges::find(pushing_, who, &Entry::who) != pushing_.end();
    }

  private:
    std::list<Entry>::iterator enter(uintptr_t who) {
        std::list<Entry> made;
        {
            const std::lock_guard guard(lock_);
            if (!idle_.empty()) return enter(who, idle_);
        }
        made.emplace_back();
        const std::lock_guard guard(lock_);
        return enter(who, made);
    }
    /// Under the lock, the first of these.
    std::list<Entry>::iterator enter(uintptr_t who, std::list<Entry>& from) {
        pushing_.splice(pushing_.begin(), from, from.begin());
        pushing_.front().who = who;
        return pushing_.begin();
    }

    ShortLock lock_;
    std::list<Entry> idle_, pushing_;
};

}  // namespace heddle::streams
