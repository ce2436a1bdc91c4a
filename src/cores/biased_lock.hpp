// BiasedLock: a lock that costs the thread that takes it again and again no locked instruction.
//
// It favours the thread that was the only one to take it for a streak of times. That one says in a word of
// its own that it is inside, and looks whether it is still the one; who comes else takes a ShortLock,
// withdraws the favour, has a heavy fence and waits until that word says that nobody is inside. Of a light
// fence between writing and looking and the heavy one between withdrawing and looking, one thread sees the
// other (base/asymmetric_fence.hpp). To withdraw it costs some microseconds, which is why it takes a streak
// to earn it; where nobody does, it is a ShortLock. As with that: within one process, not recursive, not
// fair, and nothing foreign is called inside.
//
// Source: "biased locking" (Kawachiya, Koseki, Onodera: Lock reservation, OOPSLA 2002), with the reservation
// withdrawn by membarrier(2) in the place of a stopped thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/asymmetric_fence.hpp"
#include "cores/short_lock.hpp"

namespace heddle {

class BiasedLock {
  public:
    /// Of one thread at a time, for one lock; outlives it.
    class Key {
        friend class BiasedLock;
        std::atomic<bool> inside_{false};
    };

    /// Inside while it lives. `key` is the calling thread's.
    class [[nodiscard]] Guard {
      public:
        Guard(BiasedLock& lock, Key& key) noexcept : lock_(lock), key_(lock.enter(key)) {}
        ~Guard() {
            if (key_ != nullptr)
                leave_favoured(*key_);
            else
                lock_.unlock();
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

      private:
        BiasedLock& lock_;
        Key* const key_;
    };

    /// Without a Guard, for what throws nothing. False: the thread is not favoured, and not inside.
    [[nodiscard]] bool enter_favoured(Key& key) noexcept {
        if (favoured_.load(std::memory_order_relaxed) != &key) return false;
        key.inside_.store(true, std::memory_order_relaxed);
        light_fence();
        if (favoured_.load(std::memory_order_relaxed) == &key) return true;
        leave_favoured(key);
        return false;
    }
    static void leave_favoured(Key& key) noexcept { key.inside_.store(false, std::memory_order_release); }

    /// For a thread that is not favoured; a favoured one may take its turn too, for what may throw.
    void lock(Key& key) noexcept { take_turn(&key); }
    /// For a thread without a key, which is never favoured.
    void lock() noexcept { take_turn(nullptr); }
    void unlock() noexcept { lock_.unlock(); }

    static constexpr uint32_t kStreak = 512;
    /// For a lock that others take now and then.
    static constexpr uint32_t kLongStreak = 4'096;
    /// So many times in turn earn the favour, one more for the first time.
    explicit BiasedLock(uint32_t streak = kStreak) : needed_(streak) {}

  private:
    /// The key where it is favoured, else null.
    [[nodiscard]] Key* enter(Key& key) noexcept {
        if (enter_favoured(key)) return &key;
        take_turn(&key);
        return nullptr;
    }
    [[gnu::noinline]] void take_turn(Key* key) noexcept {
        lock_.lock();
        if (const Key* other = favoured_.load(std::memory_order_relaxed); other != nullptr && other != key) {
            favoured_.store(nullptr, std::memory_order_relaxed);
            heavy_fence();
            // acquire: sees all that was done inside.
            for (Patience patience; other->inside_.load(std::memory_order_acquire);) patience.wait();
        }
        if (key != latest_) {
            latest_ = key;
            streak_ = 0;
        } else if (key != nullptr && ++streak_ == needed_) {
            streak_ = 0;
            favoured_.store(key, std::memory_order_relaxed);  // who comes next takes the lock first
        }
    }

    const uint32_t needed_;
    ShortLock lock_;
    std::atomic<const Key*> favoured_{nullptr};  // written under the lock
    const Key* latest_ = nullptr;                // so are these
    uint32_t streak_ = 0;
};

}  // namespace heddle
