// heddled: the arbiter's daemon. Started on demand by `heddle run`, by systemd (socket activation), or by
// hand.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "../number_within.hpp"
#include "arbiter/server.hpp"
#include "base/descriptor_limit.hpp"
#include "base/ending_signals.hpp"
#include "base/failpoint.h"
#include "base/settings.hpp"
#include "base/standard_streams.hpp"
#include "cores/arbiter_path.h"
#include "cores/protocol.h"
#include "heddle/error.hpp"
#include "topology/allowance_watch.hpp"

namespace {

using namespace heddle;

/// A client takes up to three.
constexpr rlim_t kMostDescriptors = 4096;
/// One second in all for an arbiter that ends, or starts.
constexpr auto kBetweenTries = std::chrono::milliseconds(5);
constexpr auto kLookAtAllowance = std::chrono::seconds(1);
constexpr int kMostTries = 200;

struct Options {
    std::string socket;
    std::string policy = "proportional";
    double idle_exit = 0;
    double away = 10;
    double fence_after_ms = 10;
    int ready_fd = -1;
    bool all_users = false;
    int clients_per_user = 0;  // 0: as many as there may be, or a share where there are other users
    int owned_per_user = 0;    // the same of CPUs
    bool verbose = false;
};

/// Where all users look for their arbiter. Its folder is root's to make.
std::string system_socket() {
    ::umask(022);  // all users are to find the socket there
    if (::mkdir(HEDDLE_SYSTEM_FOLDER, 0755) != 0 && errno != EEXIST)
        throw Error(ErrorCode::kSystem,
                    fmt::format("cannot make {}: {}", HEDDLE_SYSTEM_FOLDER, std::strerror(errno)));
    return HEDDLE_SYSTEM_SOCKET;
}

std::string socket_path(const Options& options) {
    if (!options.socket.empty()) return options.socket;
    const std::string named = setting("HEDDLE_ARBITER");
    if (options.all_users && (named.empty() || named == "auto")) return system_socket();
    char path[HEDDLE_SOCKET_PATH_BYTES];
    char problem[HEDDLE_PROBLEM_BYTES];
    switch (heddle_arbiter_path(path, problem)) {
        case HEDDLE_ARBITER_OFF:
            throw Error(ErrorCode::kInvalidArgument, "HEDDLE_ARBITER is off; name a --socket");
        case HEDDLE_ARBITER_IMPOSSIBLE:
            throw Error(ErrorCode::kSystem, problem);
        default:
            return path;
    }
}

void tell(const std::string& line) {
    to_stderr("heddled: {}\n", line);
}

/// A closed log and a limit on the size of files (which counts for pages of memory too) are errors, no ends;
/// and no socket becomes the stderr that a shell has closed.
void keep_what_a_daemon_needs() {
    for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
    fill_standard_streams();
}

bool listens(const std::string& path) {
    const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int connected =
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    return connected == 0 || errno == EAGAIN;  // or has a full backlog
}

/// One arbiter a socket: the lock is held for life, so a socket file without a holder of the lock is a dead
/// one's, or, `activated`, one that somebody else has made.
Descriptor lock_socket(const std::string& path, bool activated) {
    if (path.size() >= HEDDLE_SOCKET_PATH_BYTES)
        throw Error(ErrorCode::kLimit,
                    fmt::format("the socket's path has {} characters, and the system allows "
                                "{}: {}",
                                path.size(), HEDDLE_SOCKET_PATH_BYTES - 1, path));
    struct stat there {};
    if (!activated && ::lstat(path.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{} is there and is no socket; name another --socket", path));
    const std::string lock_path = path + ".lock";
    Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock.valid())
        throw Error(ErrorCode::kSystem, fmt::format("cannot make {}: {}", lock_path, std::strerror(errno)));
    // Who holds it and does not listen is on its way out, or in.
    for (int tries = 0; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
        if (tries == kMostTries || activated || listens(path))
            throw Error(ErrorCode::kUnavailable, fmt::format("an arbiter is running at {} already", path));
        std::this_thread::sleep_for(kBetweenTries);
    }
    HEDDLE_FAILPOINT(daemon_has_its_lock);
    if (!activated) ::unlink(path.c_str());
    return lock;
}

/// The socket that systemd opened for us (sd_listen_fds(3)), or -1.
int activated_socket() {
    const char* pid = std::getenv("LISTEN_PID");
    const char* count = std::getenv("LISTEN_FDS");
    if (pid == nullptr || count == nullptr || std::atoi(pid) != ::getpid() || std::atoi(count) < 1) return -1;
    int type = 0, listens = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(3, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET ||
        ::getsockopt(3, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
        throw Error(
            ErrorCode::kInvalidArgument,
            "descriptor 3, which LISTEN_FDS announces, is no listening SOCK_SEQPACKET socket; systemd "
            "makes one for ListenSequentialPacket= in heddled.socket");
    ::fcntl(3, F_SETFD, FD_CLOEXEC);
    ::fcntl(3, F_SETFL, O_NONBLOCK);
    return 3;
}

void tell_of_a_closed_folder(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path();
    struct stat status {};
    if (::stat(folder.c_str(), &status) == 0 && (status.st_mode & S_IXOTH) == 0)
        tell(fmt::format("users that may not enter {0} find no arbiter there; for all users: chmod a+x {0}",
                         folder));
}

/// Tells systemd (sd_notify(3)) and the launcher that clients are served from now on.
void announce_ready(int ready_fd) {
    if (ready_fd >= 0) {
        (void)!::write(ready_fd, "1", 1);
        ::close(ready_fd);
    }
    const char* path = std::getenv("NOTIFY_SOCKET");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, path, std::strlen(path));
    if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
    const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
    (void)!::sendto(socket.get(), "READY=1", 7, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                    length);
}

/// A daemon of one user has nobody to protect from him.
ArbiterLimits limits_of(const Options& options, const Machine& machine) {
    ArbiterLimits limits;
    if (!options.all_users) limits.clients_per_user = limits.clients;
    if (options.all_users) limits.owned_per_user = std::max(1, machine.cpus().count() / 2);
    limits.fence_after = Nanoseconds(static_cast<int64_t>(options.fence_after_ms * 1e6));
    if (options.clients_per_user > 0) limits.clients_per_user = options.clients_per_user;
    if (options.owned_per_user > 0) limits.owned_per_user = options.owned_per_user;
    return limits;
}

/// The machine, unless it has CPUs that no message of ours can name: some of a program's CPUs would be shared
/// and others not.
Machine machine_to_share() {
    Machine machine = Machine::detect();
    if (machine.cpus().last() >= HEDDLE_MAX_CPUS)
        throw Error(ErrorCode::kLimit,
                    fmt::format("this machine has CPU {}, and an arbiter can hand out CPUs below {} only; "
                                "programs run unmanaged here",
                                machine.cpus().last(), int{HEDDLE_MAX_CPUS}));
    return machine;
}

/// FNV-1a: the same for every arbiter at a socket.
uint32_t number_of(const std::string& path) {
    uint32_t number = 2166136261U;
    for (const char c : path) number = (number ^ static_cast<unsigned char>(c)) * 16777619U;
    return number;
}

void serve(const Options& options) {
    const std::string path = socket_path(options);
    raise_descriptor_limit(kMostDescriptors);
    const int activated = activated_socket();
    const Descriptor lock = lock_socket(path, activated >= 0);
    HEDDLE_FAILPOINT(daemon_has_its_socket);
    if (options.all_users) tell_of_a_closed_folder(path);

    const sigset_t signals = ending_signals();
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    const Descriptor stop(::signalfd(-1, &signals, SFD_CLOEXEC));

    MemoryReserve reserve(MemoryReserve::kBytes);
    Os os;
    (void)os.prefer_short_turns();
    SteadyClock clock;
    ServerConfig config;
    config.path = path;
    config.reserve = &reserve;
    config.state_path = path + ".state";
    config.fence_tag = fmt::format("{:08x}", number_of(path));
    config.away_at_most = Nanoseconds(static_cast<int64_t>(options.away * 1e9));
    config.other_users = options.all_users;
    if (options.idle_exit > 0) config.idle_exit = Nanoseconds(static_cast<int64_t>(options.idle_exit * 1e9));
    ::umask(options.all_users ? 0111 : 0177);
    const Machine machine = machine_to_share();
    AllowanceWatch allowance(machine);
    Server server(config,
                  Arbiter(machine, make_policy(options.policy), limits_of(options, machine), clock.now(),
                          allowance.current().usable),
                  os, clock, activated);
    if (options.verbose) server.log = tell;
    server.on_readable(stop.get(), [&] { server.stop(); });
    if (allowance.fd() >= 0) {
        server.on_readable(allowance.fd(), [&] {
            if (allowance.refresh()) server.set_cpus(allowance.current().usable);
        });
    }
    // A CPU that goes offline, or a limit from outside a container, is told by nobody.
    server.on_turn = [&, looked_at = clock.now()]() mutable {
        if (clock.now() - looked_at < kLookAtAllowance) return;
        looked_at = clock.now();
        try {
            if (allowance.refresh()) server.set_cpus(allowance.current().usable);
        } catch (const Error&) {  // it stays as it is, and is looked at again
        }
    };
    server.look_for_fences();
    HEDDLE_FAILPOINT(daemon_is_ready);
    announce_ready(options.ready_fd);
    server.run();
    HEDDLE_FAILPOINT(daemon_ends);
    if (activated < 0) ::unlink(path.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    keep_what_a_daemon_needs();
    for (const std::string& line : untold_settings()) tell(line);
    Options options;
    CLI::App app{"heddled: hands the CPUs of this machine to the programs that share them", "heddled"};
    app.set_version_flag("--version", HEDDLE_VERSION);
    app.failure_message(CLI::FailureMessage::simple);
    app.add_option("--socket", options.socket, "Where to listen; default: as HEDDLE_ARBITER says");
    app.add_option("--policy", options.policy, "proportional, owned, or one that was built in")
        ->capture_default_str()
        ->check([](const std::string& name) {
            try {
                (void)make_policy(name);
                return std::string();
            } catch (const Error& error) {
                return std::string(error.what());
            }
        });
    app.add_option("--idle-exit", options.idle_exit, "End after so many seconds without a client; 0: never")
        ->check(tool::number_within(0, 1e6));
    app.add_option(
           "--away", options.away,
           "How many seconds a living program of an earlier arbiter may take to come back for its CPUs")
        ->capture_default_str()
        ->check(tool::number_within(0, 1e6));
    app.add_option("--fence-after", options.fence_after_ms,
                   "How many milliseconds a program may take to leave a CPU before it is bound to others")
        ->capture_default_str()
        ->check(tool::number_within(0.1, 3.6e6));
    app.add_option("--ready-fd", options.ready_fd, "Write a byte to this descriptor when ready")
        ->check(CLI::Range(0, std::numeric_limits<int>::max()));
    app.add_flag("--all-users", options.all_users, "Serve every user of the machine");
    app.add_option("--clients-per-user", options.clients_per_user,
                   "Programs of one user at most; default: 64 of 256 with --all-users, else all")
        ->check(CLI::Range(1, ArbiterLimits{}.clients));
    app.add_option("--owned-per-user", options.owned_per_user,
                   "CPUs that programs of one user may own; default: half of them with --all-users, else all")
        ->check(CLI::Range(1, CpuSet::kMaxCpus));
    app.add_flag("--verbose", options.verbose, "Tell on stderr what happens");
    try {
        app.parse(argc, argv);
        serve(options);
        return 0;
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        tell(error.what());
        return 2;
    } catch (const std::bad_alloc&) {
        tell("no memory; programs keep what they have, and come back to the next arbiter");
        return 1;
    } catch (const std::exception& error) {
        tell(error.what());
        return 1;
    }
}
