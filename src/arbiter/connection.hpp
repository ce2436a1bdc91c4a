// Server::Connection: one peer of the server, from accept to close. Internal to the server.
#pragma once

#include <sys/epoll.h>

#include <new>

#include "arbiter/server.hpp"

namespace heddle {

struct Server::Connection {
    Descriptor socket;
    Descriptor pidfd;
    PeerCredentials peer;
    Time handshake_deadline;
    bool registered = false;
    ClientId client;  ///< ClientId{} for an observer, and before HELLO
    bool watching = false;
    Asked asked = Asked::kNothing;
    bool answer_waits = false;   ///< until the one before was sent
    bool wake_pending = false;   ///< a CHANGED that found the socket full
    uint32_t watched = EPOLLIN;  ///< for these events
    bool count_pending = false;  ///< a COUNT to be sent
    Time counted_at{};           ///< when the last one was
    uint64_t read_again_in = 0;  ///< the turn in which its page was last read because of a new grant
    std::deque<std::vector<std::byte>> outgoing;
    size_t outgoing_bytes = 0;
    size_t answer_bytes = 0;   ///< of these, those that it asked for and that were not sent yet, at most
    bool shown_pages = false;  ///< descriptors were sent to it

    Descriptor grant_fd;   ///< until it was sent
    Descriptor client_fd;  ///< for ever where the client hands CPUs over: its peers map it too
    bool can_hand_over = false;
    Reservation stands_for;                  ///< of an observer: what the program that it became was to have
    bool binds_threads = false;              ///< itself, one by one
    std::vector<std::string> limit_files{};  ///< that say what its groups allow it
    CpuSet wanted_affinity{};                ///< for all threads, from outside; empty: nobody knows
    std::vector<ClientId> peers;             ///< whose pages the client was given
    void* grant_mapping = nullptr;
    void* client_mapping = nullptr;

    [[nodiscard]] heddle_grant_page* grant_page() const {
        return static_cast<heddle_grant_page*>(grant_mapping);
    }
    [[nodiscard]] heddle_client_page* client_page() const {
        return static_cast<heddle_client_page*>(client_mapping);
    }

    /// False, with nothing left behind, where the system has no memory or descriptors.
    [[nodiscard]] bool make_pages(Os& os) {
        grant_fd = Descriptor(os.make_page("heddle-grant", HEDDLE_PAGE_BYTES, true, &grant_mapping));
        if (!grant_fd.valid()) return false;
        client_fd = Descriptor(os.make_page("heddle-client", HEDDLE_PAGE_BYTES, false, &client_mapping));
        if (!client_fd.valid()) return false;
        auto* page = new (grant_mapping) heddle_grant_page{};
        page->magic = HEDDLE_PROTOCOL_MAGIC;
        page->version = HEDDLE_PROTOCOL_VERSION;
        new (client_mapping) heddle_client_page{};
        return true;
    }
    void release_pages(Os& os) {
        if (grant_mapping != nullptr) os.unmap(grant_mapping, HEDDLE_PAGE_BYTES);
        if (client_mapping != nullptr) os.unmap(client_mapping, HEDDLE_PAGE_BYTES);
        grant_mapping = client_mapping = nullptr;
    }
};

/// Of a mask as Os has them.
inline CpuSet set_of(const std::vector<unsigned long>& mask) {
    return CpuSet::from_native(reinterpret_cast<const cpu_set_t*>(mask.data()),
                               mask.size() * sizeof(mask[0]));
}

template <class Message>
void Server::queue(Connection& connection, const Message& message) {
    const auto* first = reinterpret_cast<const std::byte*>(&message);
    connection.outgoing.emplace_back(first, first + sizeof message);
    connection.outgoing_bytes += sizeof message;
}

}  // namespace heddle
