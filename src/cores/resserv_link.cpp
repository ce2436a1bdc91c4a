#include "cores/resserv_link.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "heddle/error.hpp"

namespace heddle {
namespace {

using resserv::Scanner;
using SteadyTime = std::chrono::steady_clock;

constexpr int kSystem = 0;  // the one that it runs on
constexpr auto kAnswersWithin = std::chrono::seconds(10);

Descriptor connect_to(const std::string& place) {
    const size_t colon = place.rfind(':');
    const std::string host = colon == std::string::npos ? "127.0.0.1" : place.substr(0, colon);
    const std::string port = colon == std::string::npos ? place : place.substr(colon + 1);
    const bool is_port = !port.empty() && port.size() <= 5 &&
                         port.find_first_not_of("0123456789") == std::string::npos &&
                         std::stoi(port) <= 65535;
    if (host.empty() || !is_port)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} is no place of a resource server: PORT or HOST:PORT is meant", place));
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); error != 0)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("there is no host {}: {}", host, ::gai_strerror(error)));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &::freeaddrinfo);
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
        Descriptor socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (socket.valid() && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
    }
    throw Error(ErrorCode::kUnavailable,
                fmt::format("no resource server listens at {}:{}: {}", host, port, std::strerror(errno)));
}

/// False: there is no more, or it cannot be read.
bool receive(int socket, resserv::Messages& messages) {
    char bytes[4096];
    ssize_t got = 0;
    do got = ::recv(socket, bytes, sizeof bytes, 0);
    while (got < 0 && errno == EINTR);
    if (got > 0) messages.append({bytes, static_cast<size_t>(got)});
    return got > 0;
}

}  // namespace

ResservLink::ResservLink(const std::string& place, CpuSet allowed, Callbacks callbacks)
    : place_(place),
      allowed_(std::move(allowed)),
      callbacks_(std::move(callbacks)),
      socket_(connect_to(place)) {
    set_up();
    managed_ = true;
    thread_ = std::thread([this] { listen(); });
}

ResservLink::~ResservLink() {
    leaves_ = true;
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
}

void ResservLink::set_up() {
    try {
        say("{ list }");
        const std::string systems = wait_for("systems");
        Scanner scanner(systems);
        (void)scanner.word();
        if (std::ranges::count(scanner.rest(), kSystem) == 0)
            throw Error(ErrorCode::kBadInput, "it has not the system 0");
        say("{ access 0 }{ topology 0 }");
        procs_ = resserv::procs_in(wait_for("system"));
    } catch (const Error& error) {
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("what listens at {} is no resource server of S-Net: {}", place_, error.what()));
    }
}

std::string ResservLink::wait_for(std::string_view word) {
    const auto end = SteadyTime::now() + kAnswersWithin;
    while (true) {
        if (const std::optional<std::string> message = messages_.next()) {
            if (Scanner(*message).word() != word)
                throw Error(ErrorCode::kBadInput, fmt::format("it says \"{}\"", message->substr(0, 40)));
            return *message;
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyTime::now()).count();
        pollfd ready{socket_.get(), POLLIN, 0};
        const int is_ready = left <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left));
        if (is_ready < 0 && errno == EINTR) continue;
        if (is_ready <= 0) throw Error(ErrorCode::kUnavailable, "it does not answer");
        if (!receive(socket_.get(), messages_)) throw Error(ErrorCode::kUnavailable, "it hangs up");
    }
}

void ResservLink::listen() {
    try {
        while (true) {
            while (const std::optional<std::string> message = messages_.next()) obey(*message);
            if (!receive(socket_.get(), messages_)) break;
        }
    } catch (const Error&) {  // what it says is no message: it is no server any more
    }
    if (!leaves_) go_on_alone();
    managed_ = false;
}

void ResservLink::go_on_alone() {
    {
        const std::lock_guard guard(mutex_);
        if (!held_.empty()) return;
        held_ = allowed_;
    }
    callbacks_.gained(allowed_);
}

void ResservLink::obey(const std::string& message) {
    Scanner scanner(message);
    const std::string_view word = scanner.word();
    if (word != "grant" && word != "revoke") return;
    const std::vector<int> numbers = scanner.rest();
    if (numbers.empty() || numbers[0] != kSystem) return;
    std::vector<int> accepted{kSystem}, refused{kSystem};
    CpuSet cpus;
    {
        const std::lock_guard guard(mutex_);
        for (size_t i = 1; i < numbers.size(); ++i) {
            const auto place = static_cast<size_t>(numbers[i]);
            const int cpu = place < procs_.size() ? procs_[place] : -1;
            const bool is_held = cpu >= 0 && held_.contains(cpu);
            if (word == "revoke") {
                if (!is_held) continue;
                held_.erase(cpu);
                cpus.insert(cpu);
            } else if (cpu >= 0 && allowed_.contains(cpu)) {
                held_.insert(cpu);
                cpus.insert(cpu);
                accepted.push_back(numbers[i]);
            } else {
                refused.push_back(numbers[i]);
            }
        }
    }
    if (accepted.size() > 1) say(resserv::message("accept", accepted));
    if (refused.size() > 1) say(resserv::message("return", refused));
    if (cpus.empty()) return;
    word == "grant" ? callbacks_.gained(cpus) : callbacks_.asked_back(cpus);
}

void ResservLink::say(const std::string& text) const noexcept {
    // What does not arrive was said to nobody: its end shows that to the thread that listens.
    for (size_t at = 0; at < text.size();) {
        const ssize_t sent = ::send(socket_.get(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return;
        at += static_cast<size_t>(sent);
    }
}

int ResservLink::logical(int cpu) const noexcept {
    const auto found = std::ranges::find(procs_, cpu);
    return found == procs_.end() ? -1 : static_cast<int>(found - procs_.begin());
}

CpuSet ResservLink::held() const {
    const std::lock_guard guard(mutex_);
    return held_;
}

bool ResservLink::holds(int cpu) const noexcept {
    const std::lock_guard guard(mutex_);
    return held_.contains(cpu);
}

void ResservLink::set_demand(int cpus, bool /*soon*/) {
    const std::lock_guard guard(mutex_);
    if (std::exchange(demand_, cpus) == cpus) return;
    const int demand[] = {std::max(cpus, 0)};
    say(resserv::message("local", demand));
}

ArbiterLink::Lent ResservLink::lend(int cpu) {
    {
        const std::lock_guard guard(mutex_);
        if (!held_.contains(cpu)) return Lent::kNotHeld;
        held_.erase(cpu);
    }
    released(cpu);
    return Lent::kHandedOver;
}

bool ResservLink::reclaim(int /*cpu*/) {
    return false;
}

void ResservLink::released(int cpu) {
    const int numbers[] = {kSystem, logical(cpu)};
    if (numbers[1] >= 0) say(resserv::message("return", numbers));
}

}  // namespace heddle
