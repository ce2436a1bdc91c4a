// The server's side of handing CPUs over by pages: docs/HANDOVER.md tells the protocol.
#include <fmt/format.h>

#include <algorithm>

#include "arbiter/connection.hpp"
#include "arbiter/server.hpp"
#include "base/failpoint.h"

namespace heddle {
namespace {

constexpr size_t kMostPeers = 64;  // of one client: a bound on its mappings, and on ours for it

}  // namespace

void Server::mapped(Connection& connection) {
    HEDDLE_FAILPOINT(server_seals_a_page);
    // Without the seal a peer could write into the page: then the client has no peers.
    if (!connection.can_hand_over || os_.forbid_writing(connection.client_fd.get()) < 0) return;
    HEDDLE_FAILPOINT(server_sealed_a_page);
    arbiter_.hands_over(connection.client, clock_.now());
}

void Server::introduce(Connection& to, ClientId peer) {
    const Connection* other = connection_of(peer);
    if (other == nullptr || to.peers.size() >= kMostPeers ||
        std::ranges::find(to.peers, peer) != to.peers.end())
        return;
    auto message = message_of<heddle_peer>(HEDDLE_PEER);
    message.client = peer.value;
    HEDDLE_FAILPOINT(server_introduces);
    // A client that does not get the page waits for the arbiter instead.
    if (os_.send(to.socket.get(), &message, sizeof message, {other->client_fd.get()}) > 0)
        to.peers.push_back(peer);
    HEDDLE_FAILPOINT(server_introduced);
}

void Server::forget_peer(ClientId peer) {
    HEDDLE_FAILPOINT(server_forgets_a_peer);
    auto message = message_of<heddle_peer>(HEDDLE_PEER_GONE);
    message.client = peer.value;
    for (const auto& [fd, connection] : connections_)
        if (std::erase(connection->peers, peer) > 0) {
            queue(*connection, message);
            send_or_wait(*connection);
        }
}

void Server::apply(const EndByForce& ended) {
    Connection* client = connection_of(ended.client);
    if (client == nullptr || client->grant_page() == nullptr) return;
    client->grant_page()->successor[ended.cpu].store(heddle_word(ended.generation, HEDDLE_TAKEN),
                                                     std::memory_order_release);
    HEDDLE_FAILPOINT(grant_ends_by_force);
}

void Server::apply(const NameSuccessor& named) {
    Connection* holder = connection_of(named.holder);
    if (holder == nullptr || holder->grant_page() == nullptr) return;
    if (named.successor != ClientId{0}) introduce(*holder, named.successor);
    HEDDLE_FAILPOINT(successor_is_named);
    // release: who reads the name also finds the successor's lender word written, as it was before.
    holder->grant_page()->successor[named.cpu].store(heddle_word(named.generation, named.successor.value),
                                                     std::memory_order_release);
    HEDDLE_FAILPOINT(successor_is_shown);
}

void Server::apply(const NameLender& named) {
    Connection* client = connection_of(named.client);
    if (client == nullptr || client->grant_page() == nullptr) return;
    if (named.lender != ClientId{0}) introduce(*client, named.lender);
    HEDDLE_FAILPOINT(lender_is_named);
    client->grant_page()->lender[named.cpu].store(heddle_word(named.generation, named.lender.value));
    if (named.lender != ClientId{0} || client->grant_fd.valid()) return;
    client->wake_pending = true;
    send_or_wait(*client);
}

void Server::read_releases(Connection& connection, const CpuSet& ending, bool take, bool join_follows) {
    heddle_client_page* page = connection.client_page();
    if (page == nullptr || !connection.can_hand_over) return;
    const CpuSet leaving = arbiter_.leaving_of(connection.client);
    std::vector<Release> releases;
    for (const int cpu : arbiter_.cpus_of(connection.client)) {
        const CpuGrant& grant = arbiter_.grant_of(cpu);
        if (ending.contains(cpu))
            // Before the release word is read, and both seq_cst: a successor that reads a release written
            // after that read also reads this, and does not take the CPU.
            for (const ClientId successor : grant.successors)
                if (const Connection* other = connection_of(successor); other != nullptr)
                    other->grant_page()->lender[cpu].store(heddle_word(grant.generation, 0));
        if (ending.contains(cpu)) HEDDLE_FAILPOINT(grant_is_over);
        HEDDLE_FAILPOINT(release_is_read);
        uint64_t word = page->release[cpu].load();
        if (heddle_word_generation(word) != grant.generation) continue;
        const uint32_t to = heddle_word_client(word);
        if (to == HEDDLE_HELD || to == HEDDLE_TAKEN) continue;
        if (to != HEDDLE_LENT) {
            releases.push_back({cpu, grant.generation, ClientId{to}});
        } else if ((take || leaving.contains(cpu)) &&
                   page->release[cpu].compare_exchange_strong(word,
                                                              heddle_word(grant.generation, HEDDLE_TAKEN))) {
            HEDDLE_FAILPOINT(release_is_taken);
            releases.push_back({cpu, grant.generation, ClientId{0}});
        }
    }
    if (releases.empty()) return;
    HEDDLE_FAILPOINT(releases_count);
    const uint32_t demand = std::min(page->demand.load(), uint32_t{HEDDLE_MAX_CPUS});
    arbiter_.released(connection.client, releases, static_cast<int>(demand), clock_.now(), join_follows);
}

void Server::take_lent(bool join_follows) {
    for (const auto& [client, fd] : sockets_by_client_)
        read_releases(*connections_.at(fd), {}, true, join_follows);
}

}  // namespace heddle
