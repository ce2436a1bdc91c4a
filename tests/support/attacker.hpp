// Attacker: what a hostile client of an arbiter may use, and attacks that tests run by their names.
//
// Owned by one thread of a test. Nothing in it waits for longer than kSoonMs.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <ostream>
#include <string>

#include "support/daemon.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {

inline constexpr int kSoonMs = 3000;

class Attacker {
  public:
    explicit Attacker(Daemon& daemon)
        : path_(daemon.path()), daemon_(daemon), descriptors_at_first_(descriptors()) {}

    [[nodiscard]] WireClient connect() const { return WireClient(path_); }
    [[nodiscard]] WireClient join(uint32_t demand = 4) const {
        WireClient client(path_);
        EXPECT_TRUE(client.join(hello_of("hostile", demand)));
        return client;
    }
    [[nodiscard]] WireClient observe() const {
        WireClient client(path_);
        EXPECT_TRUE(client.join(hello_of("observer", 0, HEDDLE_KIND_OBSERVER)));
        return client;
    }
    /// The arbiter answers REFUSED with this code, and hangs up.
    static void expect_refused(WireClient& client, uint32_t code) {
        WireMessage answer;
        ASSERT_TRUE(client.receive_type(answer, HEDDLE_REFUSED, kSoonMs));
        EXPECT_EQ(answer.refused.code, code) << answer.refused.text;
        EXPECT_EQ(client.receive(answer, kSoonMs), WireClient::Got::kClosed);
    }
    template <class Message>
    void expect_refused_when_saying(const Message& message, uint32_t code = HEDDLE_REFUSED_MALFORMED) const {
        WireClient client = connect();
        ASSERT_TRUE(client.send(message));
        expect_refused(client, code);
    }
    template <class Message>
    void expect_refused_when_joined(const Message& message) const {
        WireClient client = join();
        ASSERT_TRUE(client.send(message));
        expect_refused(client, HEDDLE_REFUSED_MALFORMED);
    }

    /// Of the arbiter.
    [[nodiscard]] int descriptors() const { return daemon_.process().descriptors(); }
    [[nodiscard]] int descriptors_at_first() const { return descriptors_at_first_; }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
    Daemon& daemon_;
    int descriptors_at_first_;
};

/// Says the same thing until the arbiter has had enough, or `times`. Of what the socket refuses nothing
/// reaches the arbiter: where it takes nothing more for half a second it never will again.
template <class Message>
void flood(const WireClient& client, const Message& message, int times) {
    constexpr int kTakesNothingMore = 2'500;
    for (int i = 0, refused = 0; i < times && refused < kTakesNothingMore; ++i) {
        if (client.send(message)) {
            refused = 0;
            continue;
        }
        if (errno == EPIPE || errno == ECONNRESET) return;
        ++refused;
        ::usleep(200);
    }
}

struct Attack {
    const char* name;
    void (*carry_out)(const Attacker&);
};

inline void PrintTo(const Attack& attack, std::ostream* out) {
    *out << attack.name;
}

#define ATTACK(name) \
    Attack {         \
#name, name  \
    }

}  // namespace heddle::test
