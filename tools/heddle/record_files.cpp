#include "record_files.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/standard_streams.hpp"
#include "command.hpp"
#include "heddle/error.hpp"

namespace heddle::tool {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kTcp = "tcp:";

struct Address {
    std::string host = "127.0.0.1", port;
    [[nodiscard]] std::string text() const { return fmt::format("{}:{}", host, port); }
};

Address address_of(const std::string& place) {
    Address address;
    address.port = place.substr(kTcp.size());
    if (const size_t colon = address.port.rfind(':'); colon != std::string::npos) {
        address.host = address.port.substr(0, colon);
        address.port.erase(0, colon + 1);
        if (address.host.starts_with('[') && address.host.ends_with(']'))
            address.host = address.host.substr(1, address.host.size() - 2);
    }
    const bool number = !address.port.empty() && address.port.size() <= 5 &&
                        address.port.find_first_not_of("0123456789") == std::string::npos &&
                        std::stoi(address.port) <= 65535;
    if (address.host.empty() || !number)
        throw UsageError(fmt::format("{} is no place: tcp:PORT or tcp:HOST:PORT is meant", place));
    return address;
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses look_up(const Address& address) {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    if (const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &wanted, &found);
        error != 0)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("there is no host {}: {}", address.host, ::gai_strerror(error)));
    return {found, &::freeaddrinfo};
}

[[noreturn]] void fail(const Address& address, const char* what) {
    throw Error(ErrorCode::kSystem, fmt::format("{} {}: {}", address.text(), what, std::strerror(errno)));
}

Descriptor accept_one(const Address& address) {
    const Addresses found = look_up(address);
    const Descriptor listens(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    if (!listens.valid() || ::setsockopt(listens.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(listens.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(listens.get(), 1) != 0)
        fail(address, "cannot be listened at");
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char port[NI_MAXSERV] = "?";
    if (::getsockname(listens.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
        (void)::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, nullptr, 0, port, sizeof port,
                            NI_NUMERICSERV);
    to_stderr("heddle snet: waits for records at {}:{}\n", address.host, port);
    Descriptor accepted;
    do accepted = Descriptor(::accept4(listens.get(), nullptr, nullptr, SOCK_CLOEXEC));
    while (!accepted.valid() && errno == EINTR);
    if (!accepted.valid()) fail(address, "accepts nobody");
    return accepted;
}

Descriptor connect_to(const Address& address) {
    const Addresses found = look_up(address);
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (true) {
        for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
            Descriptor socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
            if (socket.valid() && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
        }
        if (errno != ECONNREFUSED) fail(address, "cannot be reached");
        if (std::chrono::steady_clock::now() > deadline)
            throw Error(
                ErrorCode::kUnavailable,
                fmt::format("nobody listens at {}: start who takes the records first", address.text()));
        std::this_thread::sleep_for(50ms);
    }
}

}  // namespace

OpenFile OpenFile::made(std::FILE* file, const std::string& place) {
    if (file == nullptr)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} cannot be opened: {}", place, std::strerror(errno)));
    return {file, true};
}

OpenFile OpenFile::for_reading(const std::string& place) {
    if (place == "-") return {stdin, false};
    if (place.starts_with(kTcp)) return made(::fdopen(accept_one(address_of(place)).release(), "r"), place);
    return made(std::fopen(place.c_str(), "r"), place);
}

OpenFile OpenFile::opened(const std::string& place, const char* mode) {
    if (!place.starts_with(kTcp)) return made(std::fopen(place.c_str(), mode), place);
    std::signal(SIGPIPE, SIG_IGN);  // who goes away is told as an error
    return made(::fdopen(connect_to(address_of(place)).release(), "w"), place);
}

OpenFile OpenFile::for_writing(const std::string& place) {
    if (place == "-") return {stdout, false};
    return opened(place, "w");
}

OpenFile OpenFile::for_appending(const std::string& place) {
    return opened(place, "a");
}

OpenFile::~OpenFile() {
    if (own_) std::fclose(file_);
}

RecordSink::RecordSink(const std::string& place, streams::RecordFormat format,
                       std::function<void()> on_failure)
    : file_(OpenFile::for_writing(place)),
      writer_(streams::make_record_writer(file_.get(), format)),
      on_failure_(std::move(on_failure)),
      thread_([this] { write_when_idle(); }) {}

RecordSink::~RecordSink() {
    {
        const std::lock_guard guard(mutex_);
        stops_ = true;
    }
    wakes_.notify_one();
    thread_.join();
}

void RecordSink::write(const streams::Record& record) {
    const std::lock_guard guard(mutex_);
    writer_->write(record);
    if (pending_) return;
    pending_ = true;
    wakes_.notify_one();
}

void RecordSink::flush() {
    const std::lock_guard guard(mutex_);
    writer_->flush();
}

void RecordSink::terminate() {
    const std::lock_guard guard(mutex_);
    writer_->terminate();
}

void RecordSink::write_when_idle() {
    constexpr auto kSoon = 5ms;  // what comes until then is written with it
    std::unique_lock lock(mutex_);
    while (true) {
        wakes_.wait(lock, [this] { return pending_ || stops_; });
        if (wakes_.wait_for(lock, kSoon, [this] { return stops_; })) return;
        pending_ = false;
        try {
            writer_->flush();
        } catch (...) {
            lock.unlock();
            return on_failure_();  // who writes next hears why
        }
    }
}

}  // namespace heddle::tool
