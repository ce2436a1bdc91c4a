// An arbiter that is none, for clients under the explorer: pages in this process, and messages that a
// scenario posts. Its own code is not instrumented, and has no points at which another thread may go on but
// where a message is posted or looked for. Pages stay; who uses one that the client has unmapped is found by
// its use of the mapping's memory, which is freed.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <optional>
#include <string>

#include "cores/arbiter_connection.hpp"

namespace heddle::test {

/// What the arbiter shares with a client, 1 or 2, in its first registration or the one after it.
struct PagesHere {
    heddle_grant_page grant;
    heddle_client_page page;
};
PagesHere& pages_here(uint32_t client, int registration = 0);

/// Before each run. Each client is taken in so many times; from the second on it is told of a change at once.
void arbiter_here_begins(int registrations = 1);
void arbiter_here_posts(uint32_t client, heddle_message_type type, uint32_t peer = 0);
void arbiter_here_dies();
/// poll(2) and eventfd_write(3) of the client's code.
int poll_here(pollfd* fds, nfds_t count, int timeout_ms);
int eventfd_write_here(int fd, eventfd_t value);
/// The explorer's fibers share one mask: it stays as it is.
int pthread_sigmask_here(int how, const sigset_t* set, sigset_t* before);
/// sched_getcpu(3): always the one CPU.
int sched_getcpu_here() noexcept;

/// In place of PageMapping: its descriptor says whose client page it is.
class PageHere {
  public:
    PageHere() = default;
    explicit PageHere(void* address) : address_(address) {}
    PageHere(int fd, bool writable);
    PageHere(PageHere&& other) noexcept;
    PageHere& operator=(PageHere&& other) noexcept;
    ~PageHere() = default;
    [[nodiscard]] bool valid() const { return address_ != nullptr; }
    template <class Page>
    [[nodiscard]] Page* as() const {
        return static_cast<Page*>(address_);
    }

  private:
    void* address_ = nullptr;
};

/// In place of ArbiterConnection. The path is the client's number.
class ConnectionHere {
  public:
    using Message = ArbiterConnection::Message;
    using Grant = ArbiterConnection::Grant;

    ConnectionHere(const std::string& path, const ClientDescription& description);
    void send(heddle_message_type) const noexcept {}
    void send_left(uint32_t) const noexcept {}
    [[nodiscard]] bool receive(Message& message) const;
    [[nodiscard]] int descriptor() const;
    void abandon() noexcept {}
    [[nodiscard]] uint32_t client() const { return client_; }
    [[nodiscard]] bool has_owners() const { return false; }
    [[nodiscard]] const heddle_grant_page& grant() const { return *grant_.as<const heddle_grant_page>(); }
    [[nodiscard]] heddle_client_page& page() const { return *page_.as<heddle_client_page>(); }
    [[nodiscard]] std::optional<Grant> read_grant() const { return ArbiterConnection::read_grant(grant()); }

  private:
    uint32_t client_;
    PageHere grant_, page_;
};

}  // namespace heddle::test
