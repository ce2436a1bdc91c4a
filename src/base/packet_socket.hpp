// Packets over a Unix socket of type SOCK_SEQPACKET: connecting to one, and receiving with descriptors.
//
// No state; any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "base/os.hpp"

namespace heddle {

/// Not valid, with errno, where nobody listens there, or who does is too busy for five seconds (EAGAIN).
/// Throws kLimit where the path does not fit into an address.
[[nodiscard]] Descriptor connect_to_packet_socket(const std::string& path);

/// A socket that nobody has open any more, as who was killed leaves it; no other file, and no program's
/// socket of whatever type.
[[nodiscard]] bool is_abandoned_socket(const std::string& path);

/// A pidfd of the process that listens or has connected there: where it has forked children that go on after
/// it, the socket stays open. Not valid where the kernel does not tell.
[[nodiscard]] Descriptor peer_process(int fd);

/// True: there is something to read, or the peer is gone. Signals are no end of it.
[[nodiscard]] bool wait_for_packet(int fd, int milliseconds);
/// Waits for a packet. Its length; 0 or less: the peer is gone. Of the descriptors that came with it, which
/// are closed on exec, the first are put into `descriptors`, four at most, and the others closed.
[[nodiscard]] ssize_t receive_packet(int fd, std::span<std::byte> bytes, std::span<Descriptor> descriptors);

}  // namespace heddle
