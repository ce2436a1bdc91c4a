// Whoever comes while an idle arbiter ends is taken in, by it or by the next one.
#include <gtest/gtest.h>
#include <sys/file.h>

#include <atomic>
#include <latch>
#include <thread>

#include "arbiter/server.hpp"
#include "support/child.hpp"
#include "support/honest_client.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

/// Somebody connects after the server has looked for the last time.
class LateGuest final : public Os {
  public:
    explicit LateGuest(std::string path) : path_(std::move(path)) {}

    int epoll_wait(int epoll, epoll_event* events, int count, std::optional<Nanoseconds> timeout) override {
        if (came_) return Os::epoll_wait(epoll, events, count, timeout);
        came_ = true;
        guest_ = WireClient(path_);
        guest_.send(handover_hello("late", 1));
        guest_.send(message_of<heddle_header>(HEDDLE_MAPPED));
        std::this_thread::sleep_for(2 * kIdleExit);
        is_there_.count_down();
        return 0;
    }
    /// For another thread than the server's.
    [[nodiscard]] WireClient& guest() {
        is_there_.wait();
        return guest_;
    }

    static constexpr Nanoseconds kIdleExit = 1ms;

  private:
    std::string path_;
    bool came_ = false;  // of the server's thread
    WireClient guest_;
    std::latch is_there_{1};
};

TEST(LastMoment, AnIdleArbiterTakesInWhoCameJustBeforeItsEnd) {
    const TemporaryFolder folder;
    ServerConfig config;
    config.path = folder.path() + "/arbiter.sock";
    config.idle_exit = LateGuest::kIdleExit;
    LateGuest os(config.path);
    SteadyClock clock;
    Server server(config,
                  Arbiter(Machine::synthetic("core:4 pu:1"), make_policy("proportional"), {}, clock.now()),
                  os, clock);
    std::thread serving([&] { server.run(); });
    WireMessage message;
    EXPECT_EQ(os.guest().receive(message, 20'000), WireClient::Got::kMessage);
    EXPECT_EQ(message.header.type, HEDDLE_WELCOME);
    WireClient next(config.path);
    EXPECT_TRUE(next.join(handover_hello("next", 1))) << "it does not listen any more";
    os.guest().close();
    next.close();
    serving.join();
    EXPECT_FALSE(std::filesystem::exists(config.path));
}

/// The real one, which may be set forward.
class JumpingClock final : public Clock {
  public:
    [[nodiscard]] Time now() const override { return SteadyClock().now() + Nanoseconds(ahead_.load()); }
    void jump(Nanoseconds by) { ahead_ += by.count(); }

  private:
    std::atomic<int64_t> ahead_{0};
};

TEST(LastMoment, AnArbiterIsIdleFromTheEndOfItsLastClientOn) {
    const TemporaryFolder folder;
    ServerConfig config;
    config.path = folder.path() + "/arbiter.sock";
    config.idle_exit = 5s;
    Os os;
    JumpingClock clock;
    Server server(config,
                  Arbiter(Machine::synthetic("core:4 pu:1"), make_policy("proportional"), {}, clock.now()),
                  os, clock);
    std::thread serving([&] { server.run(); });
    WireClient quiet(config.path);
    EXPECT_TRUE(quiet.join(handover_hello("quiet", 1)));
    clock.jump(1h);  // in which nothing happens, so that nobody looks at it
    quiet.close();
    std::this_thread::sleep_for(200ms);
    WireClient next(config.path);
    EXPECT_TRUE(next.join(handover_hello("next", 1))) << "it has ended with its last client";
    next.close();
    serving.join();
}

class LockedOut : public testing::Test {
  protected:
    LockedOut() {
        lock_ = Descriptor(::open((path() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        EXPECT_EQ(::flock(lock_.get(), LOCK_EX | LOCK_NB), 0);
    }
    [[nodiscard]] std::string path() const { return folder_.path() + "/arbiter.sock"; }
    [[nodiscard]] Child start() const {
        return Child({HEDDLE_BUILD_DIR "/bin/heddled", "--socket", path(), "--idle-exit", "60"},
                     {"HEDDLE_TOPOLOGY=core:8 pu:1"}, -1, folder_.path() + "/log");
    }
    [[nodiscard]] std::string said() const {
        std::ifstream file(folder_.path() + "/log");
        return {std::istreambuf_iterator<char>(file), {}};
    }

    TemporaryFolder folder_;
    Descriptor lock_;
};

TEST_F(LockedOut, TheNextArbiterWaitsForOneThatEnds) {
    Child next = start();
    EXPECT_FALSE(next.ends_within(20ms)) << said();
    lock_ = {};
    EXPECT_TRUE(becomes_true([&] { return WireClient(path()).connected(); })) << said();
}

TEST_F(LockedOut, ButNotForEver) {
    Child next = start();
    EXPECT_TRUE(next.ends_within(20s));
    EXPECT_EQ(said(), "heddled: an arbiter is running at " + path() + " already\n");
}

}  // namespace
}  // namespace heddle::test
