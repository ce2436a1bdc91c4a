// heddle snet serve: S-Net's resource server for programs that speak its text protocol, on what heddle's
// arbiter grants them: each that connects is a client of the arbiter (docs/RESSERV.md).
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <vector>

#include "base/descriptor.hpp"
#include "base/ending_signals.hpp"
#include "base/standard_streams.hpp"
#include "command.hpp"
#include "cores/arbiter_client.hpp"
#include "cores/resserv_session.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"

namespace heddle::tool {
namespace {

/// What a client does not read waits, up to so many bytes; then it is dropped.
constexpr size_t kMostQueued = size_t{1} << 16;
constexpr size_t kMostClients = 64;

[[noreturn]] void fail(std::string_view what) {
    throw Error(ErrorCode::kSystem, fmt::format("{}: {}", what, std::strerror(errno)));
}

sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
}

/// As /proc/net/tcp has it: "0100007F:DC45".
std::string row_of(const sockaddr_in& address) {
    return fmt::format("{:08X}:{:04X}", address.sin_addr.s_addr, ntohs(address.sin_port));
}

/// Whether the program at the other end of a connection on this machine is this user's, as the kernel says.
bool is_own(const sockaddr_in& peer, const sockaddr_in& here) {
    std::ifstream table("/proc/net/tcp");
    for (std::string line; std::getline(table, line);) {
        std::istringstream words(line);
        std::string number, local, remote, state, queues, timer, retransmit;
        uid_t user = 0;
        words >> number >> local >> remote >> state >> queues >> timer >> retransmit >> user;
        if (words && local == row_of(peer) && remote == row_of(here)) return user == ::getuid();
    }
    return false;
}

/// One program. Its socket is read by the server's thread; the arbiter's link says grants from a thread of
/// its own.
class Client {
  public:
    Client(Descriptor socket, std::vector<CpuPlace> procs, const std::string& host, int number, int wakes)
        : number_(number),
          wakes_(wakes),
          socket_(std::move(socket)),
          session_(std::move(procs), host, number) {
        for (const CpuPlace& place : session_.procs()) allowed_.insert(place.cpu);
    }

    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] pollfd wanted() {
        const std::lock_guard guard(mutex_);
        return {socket_.get(), static_cast<short>(queued_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    }
    /// False: it has ended.
    [[nodiscard]] bool serve(short events) {
        if ((events & POLLOUT) != 0) flush();
        if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
            std::array<char, 4096> bytes;
            const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
            if (got > 0) {
                resserv::Session::Actions actions;
                {
                    const std::lock_guard guard(mutex_);
                    actions = session_.received({bytes.data(), static_cast<size_t>(got)});
                    say(actions.say);
                }
                obey(actions);
                if (actions.close) return false;
            }
        }
        const std::lock_guard guard(mutex_);
        return !overrun_;
    }

  private:
    void flush() {
        const std::lock_guard guard(mutex_);
        send_queued();
    }
    /// Under the mutex.
    void say(const std::string& text) {
        if (text.empty()) return;
        queued_ += text;
        send_queued();
        if (queued_.size() > kMostQueued) overrun_ = true;
        const uint64_t one = 1;
        if (!queued_.empty()) (void)!::write(wakes_, &one, sizeof one);
    }
    void send_queued() {
        while (!queued_.empty()) {
            const ssize_t sent =
                ::send(socket_.get(), queued_.data(), queued_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR) continue;
            if (sent <= 0) return;
            queued_.erase(0, static_cast<size_t>(sent));
        }
    }
    void obey(const resserv::Session::Actions& actions) {
        if (actions.demand && !set_demand(*actions.demand)) overrun_ = true;
        if (link_ == nullptr) return;
        for (const int cpu : actions.returned) link_->released(cpu);
        const std::lock_guard guard(mutex_);
        for (const int cpu : actions.lent)
            if (link_->lend(cpu) == ArbiterLink::Lent::kLent) lent_.insert(cpu);
        if (actions.demand) take_back(*actions.demand);
    }
    /// Under the mutex: of what nobody else has taken, the arbiter believes that it is used here.
    void take_back(int demand) {
        CpuSet back;
        while (session_.in_use().count() + back.count() < demand && !lent_.empty()) {
            const int cpu = lent_.first();
            lent_.erase(cpu);
            if (link_->reclaim(cpu)) back.insert(cpu);
        }
        say(session_.granted(back).say);
    }
    /// False: there is no arbiter.
    [[nodiscard]] bool set_demand(int cpus) {
        if (link_ != nullptr) {
            link_->set_demand(cpus);
            return true;
        }
        if (cpus == 0) return true;
        ArbiterClientOptions options;
        options.name = fmt::format("S-Net {}", number_);
        options.demand = cpus;
        options.allowed = allowed_;
        options.in_children = false;
        // What its thread says before it is here waits for the mutex.
        std::unique_ptr<ArbiterClient> link;
        const std::lock_guard guard(mutex_);
        link = std::make_unique<ArbiterClient>(
            options, ArbiterLink::Callbacks{[this](const CpuSet& gained) { tell(gained, true); },
                                            [this](const CpuSet& lost) { tell(lost, false); }});
        if (!link->managed()) {
            to_stderr("heddle snet: no arbiter hands out CPUs: {}\n", link->problem());
            return false;
        }
        link_ = std::move(link);
        say(session_.granted(link_->held()).say);
        return true;
    }
    /// In the link's thread.
    void tell(const CpuSet& cpus, bool gained) {
        resserv::Session::Actions actions;
        ArbiterClient* link = nullptr;
        {
            const std::lock_guard guard(mutex_);
            lent_ -= cpus;
            actions = gained ? session_.granted(cpus) : session_.asked_back(cpus);
            say(actions.say);
            link = link_.get();
        }
        if (link != nullptr)
            for (const int cpu : actions.returned) link->released(cpu);
    }

    const int number_, wakes_;
    CpuSet allowed_;
    Descriptor socket_;
    std::mutex mutex_;  // for all below
    resserv::Session session_;
    CpuSet lent_;  ///< and nobody had taken them then
    std::string queued_;
    bool overrun_ = false;                 ///< it is to be hung up on
    std::unique_ptr<ArbiterClient> link_;  // last: its thread uses the others; set once
};

Descriptor listen_at(int port) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    sockaddr_in own = loopback(port);
    if (!socket.valid() || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        ::listen(socket.get(), 16) != 0)
        fail(fmt::format("127.0.0.1:{} cannot be listened at", port));
    socklen_t size = sizeof own;
    (void)::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size);
    fmt::print("listens at 127.0.0.1:{}\n", ntohs(own.sin_port));
    std::fflush(stdout);
    return socket;
}

void serve(int port) {
    // Before there is a second thread, so that none takes them.
    const sigset_t ends = ending_signals();
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    const Descriptor stop(::signalfd(-1, &ends, SFD_CLOEXEC)),
        wakes(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop.valid() || !wakes.valid()) fail("there is no descriptor");
    const Machine machine = Machine::detect();
    const std::vector<CpuPlace> procs = resserv::procs_of(machine, allowance(machine).usable);
    std::array<char, 256> host{};
    (void)::gethostname(host.data(), host.size() - 1);
    const Descriptor listens = listen_at(port);
    std::vector<std::unique_ptr<Client>> clients;
    for (int number = 1;;) {
        std::vector<pollfd> ready{
            {stop.get(), POLLIN, 0}, {wakes.get(), POLLIN, 0}, {listens.get(), POLLIN, 0}};
        for (const auto& client : clients) ready.push_back(client->wanted());
        if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) fail("poll");
        if (ready[0].revents != 0) return;
        uint64_t count = 0;
        if (ready[1].revents != 0) (void)!::read(wakes.get(), &count, sizeof count);
        for (size_t i = clients.size(); i-- > 0;) {
            const short events = ready[3 + i].revents;
            if (!clients[i]->serve(events)) clients.erase(clients.begin() + static_cast<ptrdiff_t>(i));
        }
        if (ready[2].revents == 0) continue;
        sockaddr_in peer{}, here{};
        socklen_t size = sizeof peer, here_size = sizeof here;
        Descriptor socket(::accept4(listens.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC));
        if (!socket.valid()) continue;
        (void)::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &here_size);
        if (clients.size() >= kMostClients || !is_own(peer, here)) {
            constexpr std::string_view kFull = "{ full } \n";
            (void)::send(socket.get(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            continue;
        }
        clients.push_back(
            std::make_unique<Client>(std::move(socket), procs, host.data(), number++, wakes.get()));
    }
}

}  // namespace

void add_snet_serve(CLI::App& snet) {
    const auto port = std::make_shared<int>(resserv::kPort);
    CLI::App* const command = snet.add_subcommand(
        "serve", "S-Net's resource server, on loopback, for programs of its own run-time system");
    command->add_option("--port", *port, "Where to listen; 0: any that is free")
        ->check(CLI::Range(0, 65535))
        ->capture_default_str();
    command->callback([port] { serve(*port); });
}

}  // namespace heddle::tool
