#include "cores/arbiter_socket.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/packet_socket.hpp"
#include "cores/arbiter_path.h"
#include "heddle/error.hpp"

namespace heddle {

Descriptor connect_to_arbiter(const std::string& path) {
    Descriptor socket = connect_to_packet_socket(path);
    if (!socket.valid()) {
        if (errno == ECONNREFUSED && path == HEDDLE_SYSTEM_SOCKET)
            throw NobodyListens(ErrorCode::kUnavailable, HEDDLE_SYSTEM_ARBITER_DIED);
        const char* why = std::strerror(errno);
        if (errno == ENOENT || errno == ECONNREFUSED)
            throw NobodyListens(
                ErrorCode::kUnavailable,
                fmt::format("no arbiter listens at {} ({}); heddle run starts one, or run heddled", path,
                            why));
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("cannot connect to the arbiter at {}: {}", path, why));
    }
    return socket;
}

}  // namespace heddle
