#include "cores/arbiter_socket.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "cores/arbiter_path.h"
#include "heddle/error.hpp"

namespace heddle {

Descriptor connect_to_arbiter(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw Error(ErrorCode::kLimit, fmt::format("the socket's path is longer than {}: {}",
                                                   sizeof address.sun_path - 1, path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket.valid() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        if (errno == ECONNREFUSED && path == HEDDLE_SYSTEM_SOCKET)
            throw Error(ErrorCode::kUnavailable, HEDDLE_SYSTEM_ARBITER_DIED);
        const char* why = std::strerror(errno);
        throw Error(ErrorCode::kUnavailable,
                    errno == ENOENT || errno == ECONNREFUSED
                        ? fmt::format("no arbiter listens at {} ({}); heddle run starts one, or run heddled",
                                      path, why)
                        : fmt::format("cannot connect to the arbiter at {}: {}", path, why));
    }
    return socket;
}

}  // namespace heddle
