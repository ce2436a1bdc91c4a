// An arbiter that refuses a connection as soon as it is there, as one that is full or another user's does:
// the reason is told, whether the client had said HELLO by then or not.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/os.hpp"
#include "cores/arbiter_connection.hpp"
#include "cores/codec.hpp"
#include "cores/observer.hpp"
#include "heddle/error.hpp"
#include "support/managed.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class RefusedEarly : public testing::Test {
  protected:
    static constexpr int kTimes = 40;  // often enough that each comes first

    RefusedEarly() {
        listening_ = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        EXPECT_EQ(Os::system().bind_listen(listening_.get(), path_, 16), 0);
        refuses_ = std::thread([this] {
            auto refusal = message_of<heddle_refused>(HEDDLE_REFUSED);
            refusal.code = HEDDLE_REFUSED_FULL;
            copy_text(refusal.text, sizeof refusal.text, "there is no room");
            while (true) {
                const Descriptor caller(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
                if (!caller.valid()) return;
                (void)!::send(caller.get(), &refusal, sizeof refusal, MSG_NOSIGNAL);
                ::shutdown(caller.get(), SHUT_RD);  // who calls cannot say anything any more
                ::usleep(1000);
            }
        });
    }
    ~RefusedEarly() override {
        ::shutdown(listening_.get(), SHUT_RDWR);
        refuses_.join();
    }
    [[nodiscard]] bench::Outcome heddle(std::vector<std::string> words) const {
        words.insert(words.begin(), kHeddle);
        return Managed::one({std::move(words), {"HEDDLE_ARBITER=" + path_}, {}});
    }

    TemporaryFolder folder_;
    std::string path_ = folder_.path() + "/arbiter";
    Descriptor listening_;
    std::thread refuses_;
};

TEST_F(RefusedEarly, AComponentIsToldWhy) {
    for (int i = 0; i < kTimes; ++i)
        EXPECT_THAT([&] { ArbiterConnection(path_, {}); },
                    ThrowsMessage<Error>(HasSubstr("refuses: there is no room")));
}

TEST_F(RefusedEarly, WhoLooksIsToldWhy) {
    for (int i = 0; i < kTimes; ++i)
        EXPECT_THAT([&] { (void)Observer(path_); },
                    ThrowsMessage<Error>(HasSubstr("refuses: there is no room")));
}

TEST_F(RefusedEarly, AProgramRunsUnmanagedAndSaysWhy) {
    for (int i = 0; i < kTimes; ++i) {
        const bench::Outcome outcome = heddle({"run", "--", "echo", "goes on"});
        EXPECT_EQ(outcome.output, "goes on\n");
        EXPECT_EQ(outcome.errors, "heddle: echo runs unmanaged: the arbiter refuses: there is no room\n");
    }
}

TEST_F(RefusedEarly, AProgramThatRequiresOneDoesNotRun) {
    for (int i = 0; i < kTimes; ++i) {
        const bench::Outcome outcome = heddle({"run", "--require", "--", "echo", "no"});
        EXPECT_EQ(outcome.output, "");
        EXPECT_EQ(outcome.errors, "heddle run: there is no room, and --require was given\n");
    }
}

}  // namespace
}  // namespace heddle::test
