#include "base/packet_socket.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "heddle/error.hpp"

namespace heddle {

Descriptor connect_to_packet_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw Error(ErrorCode::kLimit, fmt::format("the socket's path is longer than {}: {}",
                                                   sizeof address.sun_path - 1, path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return socket;
    // connect() waits as send() does, for room in the line of those who are not yet accepted.
    const timeval patience{5, 0}, none{};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int connected;
    do connected = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    while (connected != 0 && errno == EINTR);
    const int why = errno;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
    if (connected == 0) return socket;
    socket = Descriptor();
    errno = why;
    return socket;
}

bool is_abandoned_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    struct stat there {};
    if (path.size() >= sizeof address.sun_path || ::lstat(path.c_str(), &there) != 0 ||
        !S_ISSOCK(there.st_mode))
        return false;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    return socket.valid() &&
           ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
           errno == ECONNREFUSED;
}

Descriptor peer_process(int fd) {
    PeerCredentials who;
    Os& os = Os::system();
    return Descriptor(os.peer_credentials(fd, who) == 0 ? os.peer_pidfd(fd, who.pid) : -1);
}

bool wait_for_packet(int fd, int milliseconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (true) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd ready{fd, POLLIN, 0};
        const int found = ::poll(&ready, 1, std::max(0, static_cast<int>(left.count())));
        if (found >= 0 || errno != EINTR) return found > 0;
    }
}

ssize_t receive_packet(int fd, std::span<std::byte> bytes, std::span<Descriptor> descriptors) {
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got;
    bool was_reset = false;
    do {
        got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
        // A peer that closed before it had read all is told of once, before what it said at last.
    } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(was_reset, true))));
    if (got <= 0) return got;
    size_t place = 0;
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
        if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; ++i) {
            int received;
            std::memcpy(&received, CMSG_DATA(one) + i * sizeof(int), sizeof received);
            Descriptor owned(received);
            if (place < descriptors.size()) descriptors[place++] = std::move(owned);
        }
    }
    return got;
}

}  // namespace heddle
