// What the server sends: grants into pages, wake-ups, the status, events to those who watch.
#include <fmt/format.h>
#include <malloc.h>

#include <cstring>
#include <utility>

#include "arbiter/connection.hpp"
#include "arbiter/grant_page.hpp"
#include "arbiter/server.hpp"
#include "arbiter/shown_components.hpp"
#include "base/failpoint.h"

namespace heddle {
namespace {

constexpr Nanoseconds kReadAgainAfter = std::chrono::milliseconds(2);
/// Of one client, however often somebody looks.
constexpr Nanoseconds kCountsAtMostEvery = std::chrono::milliseconds(20);

heddle_event event_message(const Event& event, Time now) {
    auto message = message_of<heddle_event>(HEDDLE_EVENT);
    message.kind = static_cast<uint32_t>(event.kind) + HEDDLE_EVENT_JOINED;
    message.client = event.client.value;
    message.cpu = event.cpu;
    message.value = event.value;
    message.time_ns = static_cast<uint64_t>(now.time_since_epoch().count());
    copy_text(message.name, sizeof message.name, event.name);
    return message;
}

}  // namespace

void Server::apply_actions() {
    decided_at_ =
        clock_.now();  // events tell when things were decided, not when this thread came to send them
    // Applying may close a connection, which decides more. Who watches hears of it after those whom it
    // concerns.
    std::vector<Event> events;
    do {
        for (const Event& event : std::exchange(events, {})) apply(event);
        for (auto actions = arbiter_.take_actions(); !actions.empty(); actions = arbiter_.take_actions()) {
            for (ArbiterAction& action : actions) {
                if (auto* const event = std::get_if<Event>(&action))
                    events.push_back(std::move(*event));
                else
                    std::visit([this](const auto& a) { apply(a); }, action);
            }
        }
    } while (!events.empty());
}

void Server::apply(const Publish& publish) {
    if (publish.wake) {
        save(publish.client, publish.cpus);
        fit_fence(publish.client);
    }
    Connection* connection = connection_of(publish.client);
    if (connection == nullptr || connection->grant_page() == nullptr) return;
    heddle_grant_page& page = *connection->grant_page();
    page.noticed.store(static_cast<uint32_t>(publish.noticed), std::memory_order_relaxed);
    if (!publish.wake) return;
    show_grant(page, publish);
    if (!connection->registered || connection->grant_fd.valid()) return;  // it reads the page on WELCOME
    HEDDLE_FAILPOINT(publish_wakes);
    connection->wake_pending = true;
    send_or_wait(*connection);
    // Its demand may have changed while the page before this one did not ask it to say so. Once a turn: what
    // it says may lead to another page, and one that always says something else would keep everybody waiting.
    if (std::exchange(connection->read_again_in, turn_) != turn_)
        read_page(*connection, false);
    else
        read_again_at_ = clock_.now() + kReadAgainAfter;
}

void Server::apply(const Event& event) {
    const heddle_event message = event_message(event, decided_at_);
    std::vector<int> watchers;
    for (const auto& [fd, connection] : connections_)
        if (connection->watching) watchers.push_back(fd);
    for (const int fd : watchers) {
        Connection& connection = *connections_.at(fd);
        HEDDLE_FAILPOINT(event_goes_out);
        if (short_of_memory()) {
            close(connection, false);
            continue;
        }
        queue(connection, message);
        send_or_wait(connection);
        drop_if_overrun(connection);
    }
}

void Server::send_status(Connection& connection) {
    const Time now = clock_.now();
    const auto clients = arbiter_.clients(now);
    auto head = message_of<heddle_status_head>(HEDDLE_STATUS_HEAD);
    head.pid = static_cast<uint32_t>(::getpid());
    head.cpus = static_cast<uint32_t>(arbiter_.cpus().count());
    head.clients = static_cast<uint32_t>(clients.size());
    head.uptime_us = static_cast<uint64_t>((now - started_) / std::chrono::microseconds(1));
    const CoreTime time = arbiter_.core_time(now);
    head.used_us = static_cast<uint64_t>(time.used / std::chrono::microseconds(1));
    head.lent_us = static_cast<uint64_t>(time.lent / std::chrono::microseconds(1));
    head.idle_us = static_cast<uint64_t>(time.idle / std::chrono::microseconds(1));
    copy_text(head.policy, sizeof head.policy, arbiter_.policy().name());
    queue(connection, head);

    auto list = message_of<heddle_status_cpu_list>(HEDDLE_STATUS_CPU_LIST);
    for (const int cpu : arbiter_.cpus()) {
        list.cpu[list.count++] = {static_cast<uint16_t>(cpu),
                                  static_cast<uint16_t>(arbiter_.leaving(cpu) ? 1 : 0),
                                  arbiter_.holder(cpu).value};
        if (list.count < HEDDLE_STATUS_CPUS && cpu != arbiter_.cpus().last()) continue;
        queue(connection, list);
        list.count = 0;
    }
    for (const ClientStatus& client : clients) {
        auto message = message_of<heddle_status_client>(HEDDLE_STATUS_CLIENT);
        message.client = client.client.value;
        message.pid = client.pid;
        message.uid = client.user;
        message.demand = static_cast<uint32_t>(client.demand);
        message.min_cpus = static_cast<uint32_t>(client.min);
        message.max_cpus = static_cast<uint32_t>(client.max);
        message.weight = static_cast<uint32_t>(client.weight);
        message.target = static_cast<uint32_t>(client.target);
        message.away = client.away ? 1 : 0;
        if (fenced_.contains(client.client))
            message.fenced =
                fence_.holds(process_of(client.client)) ? HEDDLE_FENCED_BY_CPUSET : HEDDLE_FENCED_BY_AFFINITY;
        message.cpu_time_us = static_cast<uint64_t>(client.cpu_time / std::chrono::microseconds(1));
        message.granted = mask_of(client.granted);
        message.owned = mask_of(client.owned);
        copy_text(message.name, sizeof message.name, client.name);
        queue(connection, message);
        queue_components(connection, client.client);
    }
    HEDDLE_FAILPOINT(status_goes_out);
    queue(connection, message_of<heddle_header>(HEDDLE_STATUS_END));
    connection.answer_bytes = connection.outgoing_bytes;
    send_or_wait(connection);
}

/// Shows what is in the client's page now, and asks for what will be there when somebody looks again.
void Server::queue_components(Connection& connection, ClientId client) {
    Connection* shows = connection_of(client);
    if (shows == nullptr || shows->client_page() == nullptr) return;
    const Time now = clock_.now();
    if (shows_components(*shows->client_page()) && now - shows->counted_at >= kCountsAtMostEvery) {
        shows->counted_at = now;
        shows->count_pending = true;
        send_or_wait(*shows);
    }
    for (const ShownComponent& component :
         shown_components(*shows->client_page(), arbiter_.cpus_of(client))) {
        auto message = message_of<heddle_status_component>(HEDDLE_STATUS_COMPONENT);
        message.client = client.value;
        message.cpus = mask_of(component.cpus);
        message.inserted = component.work.inserted;
        message.ended = component.work.ended;
        copy_text(message.name, sizeof message.name, component.name);
        queue(connection, message);
    }
}

void Server::start_watching(Connection& connection) {
    connection.watching = true;
    HEDDLE_FAILPOINT(watching_begins);
    const Time now = clock_.now();
    for (const ClientStatus& client : arbiter_.clients(now)) {
        queue(connection,
              event_message({Event::Kind::kJoined, client.client, -1, client.pid, client.name}, now));
        queue(connection,
              event_message(
                  {Event::Kind::kDemand, client.client, -1, static_cast<uint32_t>(client.demand), {}}, now));
        for (const int cpu : client.granted | client.leaving)
            queue(connection, event_message({Event::Kind::kCpu, client.client, cpu, 0, {}}, now));
    }
    connection.answer_bytes = connection.outgoing_bytes;
    send_or_wait(connection);
}

void Server::send_or_wait(Connection& connection) {
    const int fd = connection.socket.get();
    if (connection.wake_pending) {
        auto message = message_of<heddle_epoch_message>(HEDDLE_CHANGED);
        message.epoch = connection.grant_page()->epoch.load(std::memory_order_relaxed);
        const ssize_t sent = os_.send(fd, &message, sizeof message, {});
        if (is_passing(sent)) return want_writable(connection, true);
        connection.wake_pending = false;  // a broken socket shows itself by its hang-up
    }
    if (connection.count_pending) {
        const auto message = message_of<heddle_header>(HEDDLE_COUNT);
        if (is_passing(os_.send(fd, &message, sizeof message, {}))) return want_writable(connection, true);
        connection.count_pending = false;
    }
    while (!connection.outgoing.empty()) {
        const auto& next = connection.outgoing.front();
        const ssize_t sent = os_.send(fd, next.data(), next.size(), {});
        if (is_passing(sent)) return want_writable(connection, true);
        if (sent < 0) {
            connection.outgoing.clear();
            connection.outgoing_bytes = 0;
            connection.watching = false;
            break;
        }
        connection.outgoing_bytes -= next.size();
        connection.outgoing.pop_front();
    }
    connection.answer_bytes = 0;
    if (std::exchange(connection.answer_waits, false)) asking_.push_back(fd);
    want_writable(connection, false);
}

void Server::want_writable(Connection& connection, bool on) {
    // Who has not read an answer says nothing that would be heard.
    const uint32_t wanted = (connection.answer_waits ? 0U : EPOLLIN) | (on ? EPOLLOUT : 0U);
    if (connection.watched == wanted) return;
    epoll_event event{wanted, {.fd = connection.socket.get()}};
    if (os_.epoll_control(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event) == 0)
        connection.watched = wanted;
    else
        retry_writable_ = true;
}

void Server::drop_if_overrun(Connection& connection) {
    if (connection.outgoing_bytes <= config_.queued_bytes + connection.answer_bytes) return;
    log(fmt::format("dropped a peer that does not read what it asked for (pid {})", connection.peer.pid));
    close(connection, false);
    ::malloc_trim(0);  // it may be the largest thing that this process ever had
}

}  // namespace heddle
