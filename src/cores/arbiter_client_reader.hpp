// ArbiterClient::Reader: keeps the pages of a link mapped while a thread reads them without the lock; and
// what a thread that waits for a CPU counts itself by. Internal to ArbiterClient.
#pragma once

#include "cores/arbiter_client.hpp"

namespace heddle {

class ArbiterClient::Reader {
  public:
    explicit Reader(const ArbiterClient& client) noexcept : client_(client) {
        client_.readers_.fetch_add(1);  // before link() is read: see readers_
    }
    ~Reader() { client_.readers_.fetch_sub(1, std::memory_order_release); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    [[nodiscard]] Link* link() const noexcept { return client_.link_.load(); }

  private:
    const ArbiterClient& client_;
};

/// While one lives, the client is not destroyed.
class ArbiterClient::Waiter {
  public:
    explicit Waiter(ArbiterClient& client) noexcept : waiters_(client.waiters_) {
        waiters_.fetch_add(1, std::memory_order_relaxed);
    }
    /// release: the last that the thread does with the client.
    ~Waiter() { waiters_.fetch_sub(1, std::memory_order_release); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

  private:
    std::atomic<int>& waiters_;
};

/// While one lives, lenders know that somebody of ours waits for a CPU.
class Watcher {
  public:
    explicit Watcher(heddle_client_page& page) noexcept : watchers_(page.watchers) {
        watchers_.fetch_add(1, std::memory_order_relaxed);  // a hint: see ArbiterClient::release
    }
    ~Watcher() { watchers_.fetch_sub(1, std::memory_order_relaxed); }
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;

  private:
    std::atomic<uint32_t>& watchers_;
};

inline void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

}  // namespace heddle
