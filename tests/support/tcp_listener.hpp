// A place on this machine where a test listens by TCP.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "base/descriptor.hpp"

namespace heddle::test {

/// On a port of its own.
class Listener {
  public:
    Listener() : listens_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof own;
        EXPECT_EQ(::bind(listens_.get(), reinterpret_cast<sockaddr*>(&own), size), 0);
        EXPECT_EQ(::listen(listens_.get(), 1), 0);
        EXPECT_EQ(::getsockname(listens_.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
        port_ = std::to_string(ntohs(own.sin_port));
    }
    [[nodiscard]] const std::string& port() const { return port_; }
    [[nodiscard]] Descriptor accept() const { return Descriptor(::accept(listens_.get(), nullptr, nullptr)); }

  private:
    Descriptor listens_;
    std::string port_;
};

}  // namespace heddle::test
