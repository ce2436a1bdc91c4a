// Programs that are stopped (SIGSTOP, Ctrl-Z): the CPUs that they demand are of use to nobody.
//
// Only a parent is told that a process is stopped. So while programs compete the arbiter looks itself, at one
// program each time that it reads their pages, and at any that does not leave CPUs in time. A program that
// goes on and has lost CPUs says so at once; at others it looks a few times a second.
#include "arbiter/connection.hpp"
#include "arbiter/server.hpp"

namespace heddle {

void Server::look_for_those_that_are_stopped() {
    if (!arbiter_.sampling()) {
        for (const ClientId client : arbiter_.stopped())
            if (Connection* connection = connection_of(client); connection != nullptr)
                look_whether_stopped(*connection);
        return;
    }
    if (Connection* const connection = next_in_turn(looked_whether_stopped_); connection != nullptr)
        look_whether_stopped(*connection);
}

Server::Connection* Server::next_in_turn(ClientId& last) const {
    if (sockets_by_client_.empty()) return nullptr;
    auto place = sockets_by_client_.upper_bound(last);
    if (place == sockets_by_client_.end()) place = sockets_by_client_.begin();
    last = place->first;
    return connections_.at(place->second).get();
}

void Server::look_whether_stopped(Connection& connection) {
    const auto process = os_.process_status(connection.peer.pid);
    if (process && process->state == 'T')
        arbiter_.was_stopped(connection.client, clock_.now());
    else if (arbiter_.is_stopped(connection.client))
        goes_on(connection);
}

void Server::goes_on(Connection& connection) {
    arbiter_.goes_on(connection.client, clock_.now());
    read_page(connection, true);
}

}  // namespace heddle
