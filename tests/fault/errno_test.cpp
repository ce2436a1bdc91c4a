// Every system call of the server, failing with every errno that it might: the server keeps serving, a client
// that it had is still served or was hung up on, and a new one is taken in.
#include <gtest/gtest.h>

#include <cstring>

#include "arbiter/server.hpp"
#include "heddle/error.hpp"
#include "support/faulty_os.hpp"
#include "support/honest_client.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

struct Failure {
    const char* name;
    Call call;
};

class FailingSystem : public testing::Test {
  protected:
    FailingSystem() {
        ServerConfig config;
        config.path = path();
        server_.emplace(
            config, Arbiter(Machine::synthetic("core:4 pu:1"), make_policy("proportional"), {}, clock_.now()),
            os_, clock_);
    }
    [[nodiscard]] std::string path() const { return folder_.path() + "/arbiter.sock"; }
    void turn(int times) {
        for (int i = 0; i < times; ++i) {
            ASSERT_TRUE(server_->turn());
            ASSERT_EQ(server_->arbiter().check(), "");
        }
    }
    /// Connects and says HELLO; the answer comes while the server turns.
    WireClient call() {
        WireClient client(path());
        EXPECT_TRUE(client.connected());
        client.send(handover_hello("client", 4));
        client.send(message_of<heddle_header>(HEDDLE_MAPPED));
        return client;
    }
    bool answered(WireClient& client, heddle_message_type type) {
        WireMessage message;
        for (int i = 0; i < 300; ++i) {
            turn(1);
            while (client.receive(message, 0) == WireClient::Got::kMessage)
                if (message.header.type == type) return true;
        }
        return false;
    }
    /// Everything the server does for a client, once.
    void a_busy_moment() {
        WireClient first = call();
        turn(3);
        WireClient second = call();
        turn(3);
        second.send(message_of<heddle_header>(HEDDLE_STATUS));
        second.send(message_of<heddle_header>(HEDDLE_WATCH));
        second.send(message_of<heddle_header>(HEDDLE_DEMAND));
        turn(5);
        first.close();
        turn(2);
    }

    SteadyClock clock_;
    FaultyOs os_;
    TemporaryFolder folder_;
    std::optional<Server> server_;
};

class Errno : public FailingSystem, public testing::WithParamInterface<std::tuple<Failure, int>> {};

TEST_P(Errno, OfAnyCallEndsNothing) {
    const auto& [failure, error] = GetParam();
    if (failure.call == Call::kEpollWait && !is_passing(-error)) {
        // The kernel says so only where the epoll itself is broken: the one documented end.
        os_.fail(failure.call, 1, error);
        EXPECT_THROW((void)server_->turn(), Error);
        return;
    }
    os_.wait_at_most(1ms);
    for (const int more : {0, 20})
        for (int nth = 1; nth <= 12; ++nth) {
            WireClient old = call();
            ASSERT_TRUE(answered(old, HEDDLE_WELCOME));
            os_.fail(failure.call, nth, error, more);
            a_busy_moment();
            os_.heal();
            WireClient next = call();
            EXPECT_TRUE(answered(next, HEDDLE_WELCOME))
                << "after call " << nth << " failed: " << std::strerror(error);
            old.send(message_of<heddle_header>(HEDDLE_STATUS));
            WireMessage message;
            if (!answered(old, HEDDLE_STATUS_END)) {
                EXPECT_EQ(old.receive(message, 0), WireClient::Got::kClosed)
                    << "neither served nor hung up on";
            }
            old.close();
            next.close();
            turn(3);
            EXPECT_EQ(server_->connections(), 0U);
        }
    EXPECT_GT(os_.seen(failure.call), 0) << "no such call was made";
}

TEST_F(FailingSystem, WithoutDescriptorsItSleepsAndServesThoseItHas) {
    WireClient old = call();
    ASSERT_TRUE(answered(old, HEDDLE_WELCOME));
    os_.fail(Call::kAccept, 1, EMFILE, 1'000'000);
    WireClient waits = call();
    const int before = os_.seen(Call::kEpollWait);
    const auto end = clock_.now() + 200ms;
    while (clock_.now() < end) turn(1);
    EXPECT_LT(os_.seen(Call::kAccept), 20);
    EXPECT_LT(os_.seen(Call::kEpollWait) - before, 100) << "it does not sleep";
    old.send(message_of<heddle_header>(HEDDLE_STATUS));
    EXPECT_TRUE(answered(old, HEDDLE_STATUS_END));
    os_.heal();
    EXPECT_TRUE(answered(waits, HEDDLE_WELCOME));
}

TEST_F(FailingSystem, WhoCannotBeKnownIsToldWhy) {
    const auto refused = [&](Call failing, int error) {
        os_.fail(failing, 1, error);
        WireClient client = call();
        WireMessage message;
        for (int i = 0; i < 300; ++i) {
            turn(1);
            if (client.receive(message, 0) == WireClient::Got::kMessage) break;
        }
        os_.heal();
        EXPECT_EQ(message.header.type, HEDDLE_REFUSED);
        return std::pair(message.refused.code, std::string(message.refused.text));
    };
    const auto [full, why] = refused(Call::kPidfd, EMFILE);
    EXPECT_EQ(full, HEDDLE_REFUSED_FULL) << why << ": there may be descriptors again";
    const auto [unseen, where] = refused(Call::kCredentials, ENODATA);
    EXPECT_EQ(unseen, HEDDLE_REFUSED_PERMISSION);
    EXPECT_NE(where.find("another pid namespace"), std::string::npos) << where;
}

/// The one that has to leave cannot be bound: the other gets the CPU all the same, and the arbiter counts it.
TEST_F(FailingSystem, AClientThatCannotBeBoundKeepsNoCpu) {
    const Machine machine = Machine::detect();
    if (machine.synthetic() || machine.cpus().count() < 2) GTEST_SKIP() << "skipped: needs two real CPUs";
    for (const int error : {ESRCH, EPERM, EINVAL, ENOMEM}) {
        ServerConfig config;
        config.path = path() + std::to_string(error);
        Server server(config, Arbiter(machine, make_policy("proportional"), {}, clock_.now()), os_, clock_);
        os_.fail(Call::kBind, 1, error, 1'000'000);
        const auto turns = [&] {
            ASSERT_TRUE(server.turn());
            ASSERT_EQ(server.arbiter().check(), "");
        };
        WireClient stays(config.path), waits(config.path);
        auto hello = hello_of("client", HEDDLE_MAX_CPUS);
        stays.send(hello);
        turns();
        turns();
        waits.send(hello);
        const auto end = clock_.now() + 3s;
        while (server.arbiter().failed_fences() == 0 && clock_.now() < end) turns();
        EXPECT_EQ(server.arbiter().failed_fences(), 1U) << std::strerror(error);
        const auto clients = server.arbiter().clients(clock_.now());
        ASSERT_EQ(clients.size(), 2U);
        for (const ClientStatus& client : clients) EXPECT_GT(client.granted.count(), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, Errno,
    testing::Combine(
        testing::Values(Failure{"accept", Call::kAccept}, Failure{"peer_credentials", Call::kCredentials},
                        Failure{"peer_pidfd", Call::kPidfd}, Failure{"receive", Call::kReceive},
                        Failure{"send", Call::kSend}, Failure{"epoll_control", Call::kEpollControl},
                        Failure{"epoll_wait", Call::kEpollWait}, Failure{"make_page", Call::kMakePage},
                        Failure{"forbid_writing", Call::kForbidWriting}),
        testing::Values(EINTR, EMFILE, ENOMEM, EAGAIN, ENOSPC)),
    [](const auto& each) {
        return std::string(std::get<0>(each.param).name) + "_" + strerrorname_np(std::get<1>(each.param));
    });

}  // namespace
}  // namespace heddle::test
