// What the system refuses to a reactor is told to who would have waited, and the next one waits.
#include "tasks/reactor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "heddle/error.hpp"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// The real system, until it is told to refuse. Any thread.
class RefusingOs final : public Os {
  public:
    std::atomic<int> epoll_error{0}, timer_error{0}, control_error{0};

    int epoll_create() override { return epoll_error != 0 ? -epoll_error : Os::epoll_create(); }
    int timer_create() override { return timer_error != 0 ? -timer_error : Os::timer_create(); }
    int epoll_control(int epoll, int operation, int fd, epoll_event* event) override {
        return control_error != 0 ? -control_error : Os::epoll_control(epoll, operation, fd, event);
    }
};

class ReactorTest : public testing::Test {
  protected:
    ReactorTest() { EXPECT_EQ(pipe(pipe_.data()), 0); }
    ~ReactorTest() override {
        for (const int end : pipe_) close(end);
    }
    static Time soon() { return SteadyClock().now() + 1ms; }

    std::array<int, 2> pipe_{};
    RefusingOs os_;
    Reactor reactor_{CpuSet(), os_};
};

TEST_F(ReactorTest, WithoutDescriptorsNobodySleeps) {
    for (std::atomic<int>* error : {&os_.epoll_error, &os_.timer_error, &os_.control_error}) {
        *error = EMFILE;
        EXPECT_THAT([&] { reactor_.sleep_until(soon()); }, ThrowsMessage<Error>(HasSubstr("ulimit -n")));
        *error = 0;
    }
    const Time until = soon();
    reactor_.sleep_until(until);
    EXPECT_GE(SteadyClock().now(), until);
}

TEST_F(ReactorTest, ADescriptorThatEpollRefuses) {
    reactor_.sleep_until(soon());
    os_.control_error = ENOSPC;
    EXPECT_THAT([&] { (void)reactor_.wait(pipe_[0], EPOLLIN, soon()); },
                ThrowsMessage<Error>(HasSubstr("fs.epoll.max_user_watches")));
    os_.control_error = ENOMEM;
    EXPECT_THROW((void)reactor_.wait(pipe_[0], EPOLLIN, soon()), Error);
    os_.control_error = EBADF;
    EXPECT_EQ(reactor_.wait(pipe_[0], EPOLLIN, soon()), Reactor::Outcome::kClosed);
    os_.control_error = 0;
    EXPECT_EQ(reactor_.wait(pipe_[0], EPOLLIN, soon()), Reactor::Outcome::kTimeout);
    EXPECT_EQ(write(pipe_[1], "x", 1), 1);
    EXPECT_EQ(reactor_.wait(pipe_[0], EPOLLIN, Time::max()), Reactor::Outcome::kReady);
}

TEST_F(ReactorTest, StartsAgainAfterItWasStopped) {
    for (int i = 0; i < 20; ++i) {
        reactor_.sleep_until(soon());
        EXPECT_EQ(reactor_.wait(pipe_[0], EPOLLIN, soon()), Reactor::Outcome::kTimeout);
        reactor_.stop();
        reactor_.stop();
    }
}

}  // namespace
}  // namespace heddle::test
