// Answers take the arbiter long: whoever asks, and however many, grants do not wait for them.
#include <gtest/gtest.h>

#include <vector>

#include "arbiter/server.hpp"
#include "support/faulty_os.hpp"
#include "support/temporary_folder.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

class ArbiterAnswers : public testing::Test {
  protected:
    ArbiterAnswers() {
        os_.wait_at_most(std::chrono::milliseconds(1));
        config_.path = folder_.path() + "/arbiter.sock";
        server_.emplace(
            config_,
            Arbiter(Machine::synthetic("core:4 pu:1"), make_policy("proportional"), {}, clock_.now()), os_,
            clock_);
    }
    WireClient join(const heddle_hello& hello) {
        WireClient client(config_.path);
        EXPECT_TRUE(client.send(hello));
        WireMessage welcome;
        for (int i = 0; i < 8; ++i) {
            turn();
            if (client.receive(welcome, 0) == WireClient::Got::kMessage) return client;
        }
        ADD_FAILURE() << "no WELCOME";
        return client;
    }
    void turn() { ASSERT_TRUE(server_->turn()); }
    /// How many were answered in full since they were looked at last.
    static size_t answered(std::vector<WireClient>& clients) {
        size_t ends = 0;
        WireMessage message;
        for (WireClient& client : clients)
            while (client.receive(message, 0) == WireClient::Got::kMessage)
                if (message.header.type == HEDDLE_STATUS_END) ++ends;
        return ends;
    }

    TemporaryFolder folder_;
    FaultyOs os_;
    SteadyClock clock_;
    ServerConfig config_;
    std::optional<Server> server_;
};

TEST_F(ArbiterAnswers, AreOneATurnAndGrantsAreBetweenThem) {
    constexpr size_t kObservers = 20, kAsked = 3;
    const WireClient holder = join(hello_of("holder", 4));
    std::vector<WireClient> observers;
    for (size_t i = 0; i < kObservers; ++i)
        observers.push_back(join(hello_of("observer", 0, HEDDLE_KIND_OBSERVER)));
    for (const WireClient& observer : observers)
        for (size_t i = 0; i < kAsked; ++i)
            ASSERT_TRUE(observer.send(message_of<heddle_header>(HEDDLE_STATUS)));
    turn();
    EXPECT_EQ(answered(observers), 1U);

    const WireClient newcomer(config_.path);
    ASSERT_TRUE(newcomer.send(hello_of("newcomer", 4)));
    turn();
    turn();
    EXPECT_EQ(server_->arbiter().clients(clock_.now()).size(), 2U) << "the newcomer waits for the observers";

    size_t ends = 1 + answered(observers);
    EXPECT_LE(ends, 3U);
    for (size_t turns = 0; turns < kObservers * kAsked && ends < kObservers * kAsked; ++turns) {
        turn();
        ends += answered(observers);
    }
    EXPECT_EQ(ends, kObservers * kAsked) << "an answer was lost, or a turn went by without one";
}

TEST_F(ArbiterAnswers, ToOneThatHasGoneTakeNoOthersTurn) {
    std::vector<WireClient> observers;
    for (int i = 0; i < 4; ++i) observers.push_back(join(hello_of("observer", 0, HEDDLE_KIND_OBSERVER)));
    for (const WireClient& observer : observers)
        ASSERT_TRUE(observer.send(message_of<heddle_header>(HEDDLE_STATUS)));
    turn();
    EXPECT_EQ(answered(observers), 1U);
    observers.erase(observers.begin(), observers.end() - 1);
    for (int i = 0; i < 8; ++i) turn();
    EXPECT_EQ(server_->connections(), 1U);
    (void)answered(observers);
    ASSERT_TRUE(observers.front().send(message_of<heddle_header>(HEDDLE_STATUS)));
    turn();
    EXPECT_EQ(answered(observers), 1U);
}

}  // namespace
}  // namespace heddle::test
