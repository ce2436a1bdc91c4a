// HonestClient: a program that keeps to the protocol while others attack the arbiter: it wants all CPUs,
// hands them over, and leaves at once what is asked back.
//
// A thread of its own works; the owner asks how it fared. mean_cpus() is over the time since the last call.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {

inline heddle_hello handover_hello(const char* name, uint32_t demand) {
    auto hello = hello_of(name, demand);
    hello.features = HEDDLE_FEATURE_HANDOVER;
    return hello;
}

class HonestClient {
  public:
    HonestClient(const std::string& path, uint32_t cpus) : client_(path) {
        EXPECT_TRUE(client_.join(handover_hello("honest", cpus)));
        EXPECT_TRUE(client_.send(message_of<heddle_header>(HEDDLE_MAPPED)));
        thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    }

    [[nodiscard]] uint32_t cpus() const { return client_.grant().count; }
    [[nodiscard]] bool hung_up_on() const { return hung_up_on_; }
    [[nodiscard]] double mean_cpus() {
        // An attack may be over before this thread looked once.
        becomes_true([&] { return watched_ns_ > 10'000'000 || hung_up_on_; }, std::chrono::seconds(2));
        const auto held_ns = static_cast<double>(held_ns_.exchange(0));
        return held_ns / static_cast<double>(std::max<uint64_t>(watched_ns_.exchange(0), 1));
    }

  private:
    void work(const std::stop_token& stop) {
        uint64_t before = monotonic_ns();
        for (WireMessage message; !stop.stop_requested();) {
            if (client_.receive(message, 1) == WireClient::Got::kClosed) {
                hung_up_on_ = true;
                return;
            }
            const WireClient::Grant grant = client_.grant();
            EXPECT_TRUE(grant.whole);
            if (client_.grant_page()->leaving.load() != 0) client_.send_left(grant.epoch);
            const uint64_t now = monotonic_ns();
            held_ns_ += grant.count * (now - before);
            watched_ns_ += now - before;
            before = now;
        }
    }

    WireClient client_;
    std::atomic<bool> hung_up_on_ = false;
    std::atomic<uint64_t> held_ns_ = 0, watched_ns_ = 0;
    std::jthread thread_;
};

}  // namespace heddle::test
