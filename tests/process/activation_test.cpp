// heddled as systemd starts it: its socket is there before it (sd_listen_fds(3)), outlives it, and it says
// when it is ready (sd_notify(3)).
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>

#include "support/child.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

class Activation : public testing::Test {
  protected:
    /// A socket of the name, listening where its type can.
    [[nodiscard]] Descriptor make_socket(int type, const std::string& path) const {
        Descriptor made(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        EXPECT_EQ(::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_TRUE(type == SOCK_DGRAM || ::listen(made.get(), 16) == 0);
        return made;
    }
    [[nodiscard]] Child start(const Descriptor& listening) const {
        const std::string command =
            "LISTEN_PID=$$ exec " HEDDLE_BUILD_DIR "/bin/heddled --all-users --socket " + path();
        return Child({"/bin/sh", "-c", command},
                     {"LISTEN_FDS=1", "NOTIFY_SOCKET=" + notify_path(), "HEDDLE_TOPOLOGY=core:4 pu:1"},
                     listening.get(), folder_.path() + "/log");
    }
    [[nodiscard]] std::string next_notice(const Descriptor& notices) const {
        pollfd ready{notices.get(), POLLIN, 0};
        char text[64] = "";
        if (::poll(&ready, 1, 10'000) != 1) return "nothing came";
        const ssize_t length = ::recv(notices.get(), text, sizeof text, 0);
        return {text, static_cast<size_t>(std::max<ssize_t>(length, 0))};
    }
    [[nodiscard]] std::string path() const { return folder_.path() + "/arbiter.sock"; }
    [[nodiscard]] std::string notify_path() const { return folder_.path() + "/notify"; }
    [[nodiscard]] std::string said() const {
        std::ifstream file(folder_.path() + "/log");
        return {std::istreambuf_iterator<char>(file), {}};
    }

    TemporaryFolder folder_;
};

TEST_F(Activation, WhoConnectedBeforeItWasThereIsServed) {
    const Descriptor listening = make_socket(SOCK_SEQPACKET, path());
    const Descriptor notices = make_socket(SOCK_DGRAM, notify_path());
    WireClient early(path());
    ASSERT_TRUE(early.send(hello_of("early", 2)));
    const Child daemon = start(listening);
    EXPECT_EQ(next_notice(notices), "READY=1") << said();
    WireMessage answer;
    EXPECT_TRUE(early.receive_type(answer, HEDDLE_WELCOME, 10'000)) << said();
}

TEST_F(Activation, AfterItsDeathTheNextOneServesTheSameSocket) {
    const Descriptor listening = make_socket(SOCK_SEQPACKET, path());
    const Descriptor notices = make_socket(SOCK_DGRAM, notify_path());
    Child daemon = start(listening);
    ASSERT_EQ(next_notice(notices), "READY=1") << said();
    WireClient client(path());
    ASSERT_TRUE(client.join(hello_of("client", 4)));
    const heddle_mask held = client.grant().mask;
    daemon.signal(SIGKILL);
    ASSERT_TRUE(daemon.ends_within(10s));
    WireClient again(path());  // nobody is there to accept it; as the socket is, it waits
    heddle_hello hello = hello_of("client", 4);
    hello.held = held;
    ASSERT_TRUE(again.send(hello));
    daemon = start(listening);
    EXPECT_EQ(next_notice(notices), "READY=1") << said();
    WireMessage answer;
    EXPECT_TRUE(again.receive_type(answer, HEDDLE_WELCOME, 10'000)) << said();
}

TEST_F(Activation, NobodyServesBesideIt) {
    const Descriptor listening = make_socket(SOCK_SEQPACKET, path());
    const Descriptor notices = make_socket(SOCK_DGRAM, notify_path());
    Child daemon = start(listening);
    ASSERT_EQ(next_notice(notices), "READY=1") << said();
    Child second({HEDDLE_BUILD_DIR "/bin/heddled", "--all-users", "--socket", path()}, {}, -1,
                 folder_.path() + "/second");
    ASSERT_TRUE(second.ends_within(10s));
    EXPECT_NE(WEXITSTATUS(second.reap()), 0);
    WireClient client(path());
    EXPECT_TRUE(client.join(hello_of("client", 4))) << "the socket is gone";
    // And the other way round.
    daemon.signal(SIGKILL);
    ASSERT_TRUE(daemon.ends_within(10s));
    Child alone({HEDDLE_BUILD_DIR "/bin/heddled", "--all-users", "--socket", path()}, {}, -1,
                folder_.path() + "/second");
    ASSERT_TRUE(becomes_true([&] { return WireClient(path()).join(hello_of("client", 4)); }));
    Child late = start(listening);
    ASSERT_TRUE(late.ends_within(10s));
    EXPECT_NE(WEXITSTATUS(late.reap()), 0);
    EXPECT_NE(said().find("is running at"), std::string::npos) << said();
}

TEST_F(Activation, AtItsEndTheSocketIsSystemds) {
    const Descriptor listening = make_socket(SOCK_SEQPACKET, path());
    const Descriptor notices = make_socket(SOCK_DGRAM, notify_path());
    const Child daemon = start(listening);
    ASSERT_EQ(next_notice(notices), "READY=1") << said();
    daemon.signal(SIGTERM);
    ASSERT_TRUE(daemon.ends_within(10s));
    EXPECT_TRUE(WireClient(path()).connected()) << "it took the socket's name with it";
}

TEST_F(Activation, ASocketOfAnotherKindIsRefusedInOneLine) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        const Descriptor wrong = make_socket(type, folder_.path() + "/wrong" + std::to_string(type));
        Child daemon = start(wrong);
        ASSERT_TRUE(daemon.ends_within(10s)) << said();
        EXPECT_EQ(WEXITSTATUS(daemon.reap()), 1);
    }
    EXPECT_NE(said().find("ListenSequentialPacket="), std::string::npos) << said();
}

}  // namespace
}  // namespace heddle::test
