// ArbiterClient::Reader: keeps the pages of a link mapped while a thread reads them without the lock; and
// how a thread that waits for a CPU is known to others. Internal to ArbiterClient.
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

/// Tells lenders whether somebody of ours waits for a CPU: a hint, see ArbiterClient::release. Each who waits
/// says so again and again, so it may be taken back for all of them.
inline void show_watched(heddle_client_page& page, bool watched) noexcept {
    const uint32_t shown = watched ? 1 : 0;
    if (page.watched.load(std::memory_order_relaxed) != shown)  // else lenders would have to read it anew
        page.watched.store(shown, std::memory_order_relaxed);
}

}  // namespace heddle
