// Two users and one arbiter: a stranger is refused, or, where all users are served, gets its share and no
// hold on what is another's. Needs root, to become somebody else.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cores/observer.hpp"
#include "support/daemon.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

constexpr uid_t kStranger = 65534;

class TwoUsers : public testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    }
    void start(std::vector<std::string> arguments) {
        daemon_.emplace(Daemon::Options{"core:8 pu:1", std::move(arguments), {}});
        ::chmod(daemon_->folder().c_str(), 0755);
    }
    /// What `act` says, done by another user in a process of its own.
    template <class Act>
    static bool as_stranger(Act act) {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(::setresuid(kStranger, kStranger, kStranger) == 0 && act() ? 0 : 1);
        int status = 1;
        ::waitpid(child, &status, 0);
        return status == 0;
    }
    static bool is_refused(WireClient& client, uint32_t code) {
        WireMessage answer;
        return client.receive_type(answer, HEDDLE_REFUSED, 2000) && answer.refused.code == code;
    }

    std::optional<Daemon> daemon_;
};

TEST_F(TwoUsers, TheSocketOfOneIsClosedToTheOther) {
    start({});
    EXPECT_TRUE(as_stranger([&] { return !WireClient(daemon_->path()).connected(); }));
}

TEST_F(TwoUsers, WhoReachesTheSocketAllTheSameIsRefused) {
    start({});
    ::chmod(daemon_->path().c_str(), 0666);
    EXPECT_TRUE(as_stranger([&] {
        WireClient client(daemon_->path());
        return client.connected() && is_refused(client, HEDDLE_REFUSED_PERMISSION);
    }));
}

TEST_F(TwoUsers, AStrangerGetsItsShareAndNoMore) {
    start({"--all-users"});
    WireClient own(daemon_->path());
    auto hello = hello_of("own", 8);
    hello.features = HEDDLE_FEATURE_HANDOVER;
    ASSERT_TRUE(own.join(hello));
    own.send(message_of<heddle_header>(HEDDLE_MAPPED));
    EXPECT_TRUE(as_stranger([&] {
        WireClient client(daemon_->path());
        auto greedy = hello_of("greedy", 8);
        greedy.features = HEDDLE_FEATURE_HANDOVER;
        if (!client.join(greedy) || !client.send(message_of<heddle_header>(HEDDLE_MAPPED))) return false;
        auto limits = message_of<heddle_limits>(HEDDLE_LIMITS);
        limits.min_cpus = 1;
        limits.weight = 1;
        client.send(limits);
        if (!becomes_true([&] { return client.grant().count == 4; }, 2s)) return false;
        // Neither named as a successor of another user's CPU nor given the page of another user.
        WireMessage message;
        while (client.receive(message, 50) == WireClient::Got::kMessage)
            if (message.header.type == HEDDLE_PEER) return false;
        for (const auto& lender : client.grant_page()->lender)
            if (heddle_word_client(lender.load()) != 0) return false;
        return true;
    }));
    EXPECT_TRUE(becomes_true([&] { return own.grant().count == 8; }, 2s));
}

TEST_F(TwoUsers, AStrangerCannotTakeAllConnections) {
    start({"--all-users"});
    EXPECT_TRUE(as_stranger([&] {
        std::vector<WireClient> many;
        for (int i = 0; i < 400; ++i) {
            WireClient client(daemon_->path());
            if (!client.join(hello_of("many", 1, HEDDLE_KIND_OBSERVER), 2000)) return !many.empty();
            many.push_back(std::move(client));
        }
        return false;
    }));
    WireClient own(daemon_->path());
    EXPECT_TRUE(own.join(hello_of("own", 8)));
}

}  // namespace
}  // namespace heddle::test
