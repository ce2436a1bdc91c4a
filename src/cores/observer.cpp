#include "cores/observer.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/packet_socket.hpp"
#include "cores/arbiter_path.h"
#include "cores/arbiter_socket.hpp"
#include "cores/codec.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr Nanoseconds kAnswerWithin = std::chrono::seconds(2);

/// The list of CPUs and those of clients came together, from one moment.
void note_lent(ArbiterSnapshot& snapshot) {
    for (auto& owner : snapshot.clients)
        for (const auto& cpu : snapshot.cpus)
            if (owner.owned.contains(cpu.cpu) && cpu.client != 0 && cpu.client != owner.id)
                owner.lent.insert(cpu.cpu);
}

std::string text_of(const char* text, size_t bytes) {
    return {text, ::strnlen(text, bytes)};
}

}  // namespace

Observer::Observer(const std::string& path) : path_(path), socket_(connect_to_arbiter(path)) {
    auto hello = message_of<heddle_hello>(HEDDLE_HELLO);
    hello.kind = HEDDLE_KIND_OBSERVER;
    hello.weight = 1;
    send(&hello, sizeof hello);
    Message answer;
    if (!receive(answer, kAnswerWithin))
        throw Error(ErrorCode::kUnavailable, fmt::format("the arbiter at {} does not answer", path));
}

std::string Observer::default_path() {
    char path[HEDDLE_SOCKET_PATH_BYTES];
    char problem[HEDDLE_PROBLEM_BYTES];
    switch (heddle_arbiter_path(path, problem)) {
        case HEDDLE_ARBITER_OFF:
            throw Error(ErrorCode::kUnavailable, "HEDDLE_ARBITER is off: there is no arbiter to ask");
        case HEDDLE_ARBITER_IMPOSSIBLE:
            throw Error(ErrorCode::kUnavailable, problem);
        default:
            return path;
    }
}

ArbiterSnapshot Observer::status() {
    const auto request = message_of<heddle_header>(HEDDLE_STATUS);
    send(&request, sizeof request);
    ArbiterSnapshot snapshot;
    Message message;
    while (receive(message, kAnswerWithin)) {
        switch (message.header.type) {
            case HEDDLE_STATUS_HEAD:
                snapshot.pid = message.head.pid;
                snapshot.policy = text_of(message.head.policy, sizeof message.head.policy);
                snapshot.uptime_s = static_cast<double>(message.head.uptime_us) / 1e6;
                snapshot.used_s = static_cast<double>(message.head.used_us) / 1e6;
                snapshot.lent_s = static_cast<double>(message.head.lent_us) / 1e6;
                snapshot.idle_s = static_cast<double>(message.head.idle_us) / 1e6;
                break;
            case HEDDLE_STATUS_CPU_LIST:
                for (uint32_t i = 0; i < message.cpus.count && i < HEDDLE_STATUS_CPUS; ++i)
                    snapshot.cpus.push_back({message.cpus.cpu[i].cpu, message.cpus.cpu[i].client,
                                             message.cpus.cpu[i].leaving != 0});
                break;
            case HEDDLE_STATUS_CLIENT: {
                const auto& c = message.client;
                snapshot.clients.push_back({c.client,
                                            c.pid,
                                            c.uid,
                                            text_of(c.name, sizeof c.name),
                                            static_cast<int>(c.demand),
                                            static_cast<int>(c.min_cpus),
                                            static_cast<int>(c.max_cpus),
                                            static_cast<int>(c.weight),
                                            static_cast<int>(c.target),
                                            cpus_of(c.granted),
                                            cpus_of(c.owned),
                                            {},
                                            c.away != 0,
                                            c.fenced,
                                            static_cast<double>(c.cpu_time_us) / 1e6});
                break;
            }
            case HEDDLE_STATUS_COMPONENT: {
                const auto& c = message.component;
                snapshot.components.push_back(
                    {c.client, text_of(c.name, sizeof c.name), cpus_of(c.cpus), {c.inserted, c.ended}});
                const auto& component = snapshot.components.back();
                for (auto& cpu : snapshot.cpus)
                    if (cpu.client == c.client && component.cpus.contains(cpu.cpu))
                        cpu.component = component.name;
                break;
            }
            case HEDDLE_STATUS_END:
                note_lent(snapshot);
                return snapshot;
            default:
                break;
        }
    }
    throw Error(ErrorCode::kUnavailable, fmt::format("the arbiter at {} does not answer", path_));
}

void Observer::watch() {
    const auto request = message_of<heddle_header>(HEDDLE_WATCH);
    send(&request, sizeof request);
}

std::optional<heddle_event> Observer::next_event(Nanoseconds timeout) {
    Message message;
    while (receive(message, timeout))
        if (message.header.type == HEDDLE_EVENT) return message.event;
    return std::nullopt;
}

bool Observer::receive(Message& message, Nanoseconds timeout) {
    pollfd ready{socket_.get(), POLLIN, 0};
    const Time deadline = SteadyClock().now() + timeout;
    for (int polled = -1; polled < 0;) {
        const auto left = std::max(deadline - SteadyClock().now(), Nanoseconds(0));
        polled = ::poll(&ready, 1, static_cast<int>(left / std::chrono::milliseconds(1)));
        if (polled == 0) return false;
        if (polled < 0 && errno != EINTR)
            throw Error(ErrorCode::kSystem, fmt::format("poll: {}", std::strerror(errno)));
    }
    std::memset(static_cast<void*>(&message), 0, sizeof message);
    const ssize_t got = receive_packet(socket_.get(), std::as_writable_bytes(std::span(&message, 1)), {});
    if (got <= 0) throw Error(ErrorCode::kUnavailable, fmt::format("the arbiter at {} went away", path_));
    if (static_cast<size_t>(got) < sizeof message.header || message.header.magic != HEDDLE_PROTOCOL_MAGIC)
        throw Error(ErrorCode::kVersionMismatch, fmt::format("what listens at {} is not an arbiter", path_));
    if (message.header.type == HEDDLE_REFUSED) {
        const auto code = message.refused.code == HEDDLE_REFUSED_VERSION      ? ErrorCode::kVersionMismatch
                          : message.refused.code == HEDDLE_REFUSED_PERMISSION ? ErrorCode::kPermission
                                                                              : ErrorCode::kLimit;
        throw Error(code, fmt::format("the arbiter at {} refuses: {}", path_,
                                      text_of(message.refused.text, sizeof message.refused.text)));
    }
    return true;
}

void Observer::send(const void* bytes, size_t length) {
    // Who has hung up may have said before why it refuses: that is there to be read.
    if (::send(socket_.get(), bytes, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length) && errno != EPIPE)
        throw Error(ErrorCode::kUnavailable, fmt::format("the arbiter at {} went away", path_));
}

}  // namespace heddle
