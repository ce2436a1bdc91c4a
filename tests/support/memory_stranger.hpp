// Stranger: a client of a memory server that says what it wants, packet by packet.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <optional>
#include <string>

#include "base/os.hpp"
#include "memory/ipc_wire.hpp"

namespace heddle::test {

/// One that says what it wants.
class Stranger {
  public:
    explicit Stranger(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    void say(const memory::Packet& packet) const {
        (void)!::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
    }
    /// Nothing: the server has closed.
    [[nodiscard]] std::optional<memory::ipc::Numbered<memory::ipc::Reply>> hears() const {
        std::byte bytes[memory::ipc::kMaxPacket];
        const ssize_t size = ::recv(socket_.get(), bytes, sizeof bytes, 0);
        if (size <= 0) return {};
        return memory::ipc::parse_reply({bytes, static_cast<size_t>(size)});
    }

    [[nodiscard]] int descriptor() const { return socket_.get(); }

  private:
    Descriptor socket_;
};

}  // namespace heddle::test
