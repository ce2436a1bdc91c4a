#include "arbiter_here.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "heddle/error.hpp"
#include "support/explorer.hpp"

namespace heddle::test {
namespace {

constexpr int kFirstDescriptor = 1 << 24;  // beyond all real ones

struct Posted {
    heddle_message_type type;
    uint32_t peer;
};
struct ClientSide {
    std::array<PagesHere, 2> pages;
    int registered = 0;
    std::deque<Posted> posted;
};
struct Here {
    std::array<ClientSide, 2> clients;
    int registrations = 1;
    bool dead = false;
    std::vector<int> written;  // eventfds
};
Here& here() {
    static Here& all = *new Here;
    return all;
}
ClientSide& side(uint32_t client) {
    return here().clients[client - 1];
}

/// What is posted happens before what is received. Unlocking wakes who polls, also where a fault loses
/// wake-ups.
class Mailbox {
  public:
    Mailbox() : explorer_(Explorer::current()) {
        if (explorer_ != nullptr) explorer_->lock(kAddress);
    }
    ~Mailbox() {
        if (explorer_ != nullptr) explorer_->unlock(kAddress);
        if (explorer_ != nullptr && changed_) explorer_->unlock(kPolled);
    }
    void changed() { changed_ = true; }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;
    static constexpr uintptr_t kAddress = 8, kPolled = 16;  // no real ones

  private:
    bool changed_ = false;
    Explorer* explorer_;
};

bool readable(int fd) {
    if (fd < kFirstDescriptor) return std::ranges::find(here().written, fd) != here().written.end();
    return here().dead || !side(static_cast<uint32_t>(fd - kFirstDescriptor)).posted.empty();
}

}  // namespace

PagesHere& pages_here(uint32_t client, int registration) {
    return side(client).pages[static_cast<size_t>(registration)];
}

void arbiter_here_begins(int registrations) {
    for (ClientSide& client : here().clients) {
        std::memset(static_cast<void*>(&client.pages), 0, sizeof client.pages);
        client.registered = 0;
        client.posted.clear();
    }
    here().registrations = registrations;
    here().dead = false;
    here().written.clear();
}

void arbiter_here_posts(uint32_t client, heddle_message_type type, uint32_t peer) {
    Mailbox mailbox;
    mailbox.changed();
    side(client).posted.push_back({type, peer});
}

void arbiter_here_dies() {
    Mailbox mailbox;
    mailbox.changed();
    here().dead = true;
}

int eventfd_write_here(int fd, eventfd_t) {
    Mailbox mailbox;
    mailbox.changed();
    here().written.push_back(fd);
    return 0;
}

int pthread_sigmask_here(int, const sigset_t*, sigset_t*) {
    return 0;
}

int sched_getcpu_here() noexcept {
    return 0;
}

int poll_here(pollfd* fds, nfds_t count, int timeout_ms) {
    for (;;) {
        int ready = 0;
        {
            const Mailbox open;
            for (nfds_t i = 0; i < count; ++i) {
                fds[i].revents = readable(fds[i].fd) ? POLLIN : 0;
                ready += fds[i].revents != 0;
            }
        }
        Explorer* explorer = Explorer::current();
        if (ready > 0 || explorer == nullptr) return ready;
        if (!explorer->sleep_at_once(Mailbox::kPolled, timeout_ms >= 0)) return 0;
    }
}

PageHere::PageHere(int fd, bool) : address_(&pages_here(static_cast<uint32_t>(fd - kFirstDescriptor)).page) {}
PageHere::PageHere(PageHere&& other) noexcept : address_(std::exchange(other.address_, nullptr)) {}
PageHere& PageHere::operator=(PageHere&& other) noexcept {
    std::swap(address_, other.address_);
    return *this;
}
ConnectionHere::ConnectionHere(const std::string& path, const ClientDescription&)
    : client_(static_cast<uint32_t>(std::stoi(path))) {
    ClientSide& own = side(client_);
    if (own.registered == here().registrations) throw Error(ErrorCode::kUnavailable, "nobody listens");
    PagesHere& pages = pages_here(client_, own.registered++);
    here().dead = false;
    if (own.registered > 1) own.posted.push_back({HEDDLE_CHANGED, 0});
    grant_ = PageHere(&pages.grant);
    page_ = PageHere(&pages.page);
}

int ConnectionHere::descriptor() const {
    return kFirstDescriptor + static_cast<int>(client_);
}

bool ConnectionHere::receive(Message& message) const {
    const Mailbox open;
    ClientSide& own = side(client_);
    if (own.posted.empty()) return false;
    message.type = own.posted.front().type;
    message.client = own.posted.front().peer;
    message.page = Descriptor(kFirstDescriptor + static_cast<int>(message.client));
    own.posted.pop_front();
    return true;
}

}  // namespace heddle::test
