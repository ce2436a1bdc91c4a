// Tasks that wait for a time or for descriptors, on every engine and outside of tasks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "heddle/await.hpp"
#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "support/engines.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

Deadline now() {
    return std::chrono::steady_clock::now();
}

/// Two connected ends, which do not block.
class Ends {
  public:
    Ends() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_.data()), 0); }
    ~Ends() {
        for (const int end : ends_) close(end);
    }
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;

    [[nodiscard]] int operator[](size_t end) const { return ends_[end]; }
    void write_to(size_t end) const { EXPECT_EQ(write(ends_[end], "x", 1), 1); }
    [[nodiscard]] bool read_from(size_t end) const {
        char byte;
        return read(ends_[end], &byte, 1) == 1;
    }
    void fill(size_t end) const {
        const std::array<char, 4'096> bytes{};
        while (write(ends_[end], bytes.data(), bytes.size()) > 0) {
        }
    }
    void drain(size_t end) const {
        std::array<char, 4'096> bytes;
        while (read(ends_[end], bytes.data(), bytes.size()) > 0) {
        }
    }

  private:
    std::array<int, 2> ends_{-1, -1};
};

size_t open_descriptors() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class AwaitTest : public test::OnEachEngine {
  protected:
    void SetUp() override {
        OnEachEngine::SetUp();
        if (!IsSkipped()) runtime_.emplace(options(1));
    }
    std::optional<Runtime> runtime_;  // of one worker: a task that keeps it holds up all others
};
INSTANTIATE_TEST_SUITE_P(Engines, AwaitTest, test::engines(), test::engine_name);

TEST_P(AwaitTest, NobodySleepsShorterThanItAskedFor) {
    std::atomic<int> early{0}, slept{0};
    Sequence sequence(*runtime_);
    for (int i = 0; i < 40; ++i)
        sequence.insert([&, i] {
            const Deadline until = now() + (i * 7 % 11) * 1ms;
            if (i % 2 == 0)
                sleep_until(until);
            else
                sleep_for(until - now());
            early += now() < until;
            ++slept;
        });
    sequence.wait();
    EXPECT_EQ(early, 0);
    EXPECT_EQ(slept, 40);
}

TEST_P(AwaitTest, ASleeperLeavesItsWorkerToOthers) {
    std::atomic<bool> other_ran{false};
    Sequence sequence(*runtime_);
    sequence.insert([&] {
        while (!other_ran) sleep_for(1ms);
    });
    sequence.insert([&] { other_ran = true; });
    sequence.wait();
}

TEST_P(AwaitTest, AsManySleepersAsOneLikes) {
    const int sleepers = test::kSanitized ? 200 : 2'000;
    std::atomic<int> slept{0};
    const Deadline until = now() + 50ms;
    Sequence sequence(*runtime_);
    for (int i = 0; i < sleepers; ++i)
        sequence.insert([&] {
            sleep_until(until);
            ++slept;
        });
    sequence.wait();
    EXPECT_EQ(slept, sleepers);
    EXPECT_GE(now(), until);
}

TEST_P(AwaitTest, ATimeThatHasPassedIsNoWait) {
    const auto look = [] {
        sleep_until(now() - 1h);
        sleep_until(Deadline::min());
        sleep_for(0ns);
        sleep_for(-5s);
        EXPECT_THAT([] { sleep_until(Deadline::max()); }, ThrowsMessage<Error>(HasSubstr("never comes")));
        EXPECT_THAT([] { sleep_for(std::chrono::nanoseconds::max()); },
                    ThrowsMessage<Error>(HasSubstr("never comes")));
    };
    look();
    Sequence sequence(*runtime_);
    sequence.insert(look);
    sequence.wait();
}

TEST_P(AwaitTest, AReaderGoesOnWhenAnotherTaskHasWritten) {
    const Ends ends;
    bool read = false;
    Sequence sequence(*runtime_);
    sequence.insert([&] {
        wait_readable(ends[0]);
        read = ends.read_from(0);
    });
    sequence.insert([&] { ends.write_to(1); });
    sequence.wait();
    EXPECT_TRUE(read);
}

TEST_P(AwaitTest, AWriterGoesOnWhenThereIsRoom) {
    const Ends ends;
    ends.fill(0);
    Sequence sequence(*runtime_);
    sequence.insert([&] {
        wait_writable(ends[0]);
        ends.write_to(0);
    });
    sequence.insert([&] { ends.drain(1); });
    sequence.wait();
    EXPECT_TRUE(ends.read_from(1));
}

TEST_P(AwaitTest, ManyWaitForOneDescriptorBothWays) {
    const Ends ends;
    ends.fill(0);
    std::atomic<int> readers{0}, writers{0};
    Sequence sequence(*runtime_);
    for (int i = 0; i < 5; ++i) {
        sequence.insert([&] {
            wait_readable(ends[0]);
            ++readers;
        });
        sequence.insert([&] {
            wait_writable(ends[0]);
            ++writers;
        });
    }
    sequence.insert([&] {
        ends.write_to(1);
        while (readers < 5) sleep_for(1ms);
        EXPECT_EQ(writers, 0);  // what made it readable leaves no room
        ends.drain(1);
    });
    sequence.wait();
    EXPECT_EQ(writers, 5);
}

TEST_P(AwaitTest, ADeadlineEndsTheWait) {
    const Ends ends;
    const auto look = [&] {
        const Deadline until = now() + 5ms;
        EXPECT_EQ(wait_readable(ends[0], until), Readiness::kTimeout);
        EXPECT_GE(now(), until);
        EXPECT_EQ(wait_readable(ends[0], now() - 1s), Readiness::kTimeout);
        EXPECT_EQ(wait_writable(ends[0], now() - 1s), Readiness::kReady);
        ends.write_to(1);
        EXPECT_EQ(wait_readable(ends[0], now() + 1h), Readiness::kReady);
        EXPECT_TRUE(ends.read_from(0));
    };
    look();
    Sequence sequence(*runtime_);
    sequence.insert(look);
    sequence.insert([&] {  // and leaves those who wait longer
        EXPECT_EQ(wait_readable(ends[1], now() + 3ms), Readiness::kTimeout);
        wait_writable(ends[1]);
    });
    sequence.wait();
}

TEST_P(AwaitTest, AnEndIsReadableAndSoIsAFile) {
    Ends ends;
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    Sequence sequence(*runtime_);
    sequence.insert([&] {
        wait_readable(file);
        wait_readable(ends[0]);
        EXPECT_FALSE(ends.read_from(0));
    });
    sequence.insert([&] { shutdown(ends[0], SHUT_RDWR); });
    sequence.wait();
    close(file);
}

TEST_P(AwaitTest, OneThatIsNotOpenIsAnError) {
    const int closed = dup(0);
    close(closed);
    const auto look = [&] {
        EXPECT_THAT([] { wait_readable(-1); }, ThrowsMessage<Error>(HasSubstr("descriptor -1 is not open")));
        EXPECT_THAT([&] { wait_writable(closed); }, ThrowsMessage<Error>(HasSubstr("is not open")));
        EXPECT_THAT([&] { (void)wait_readable(closed, now()); },
                    ThrowsMessage<Error>(HasSubstr("is not open")));
    };
    look();
    Sequence sequence(*runtime_);
    sequence.insert(look);
    sequence.wait();
}

TEST_P(AwaitTest, OneThatIsClosedMeanwhileIsAnError) {
    const Ends ends;
    const int one = dup(ends[0]);
    Sequence sequence(*runtime_), other(*runtime_);
    std::atomic<bool> waits{false};
    for (int i = 0; i < 2; ++i)
        sequence.insert([&] {
            waits = true;
            EXPECT_THAT(
                [&] { wait_readable(one); },
                ThrowsMessage<Error>(AnyOf(HasSubstr("closed while a task"), HasSubstr("is not open"))));
        });
    other.insert([&] {
        while (!waits) sleep_for(1ms);
        sleep_for(5ms);
        close(one);
    });
    other.wait();
    sequence.wait();
}

TEST_P(AwaitTest, ANumberThatIsAnotherFileNowIsWaitedForAnew) {
    const Ends first, second;
    const int number = dup(first[0]);
    std::atomic<bool> waits{false};
    std::atomic<int> told{0};
    Sequence sequence(*runtime_), other(*runtime_);
    sequence.insert([&] {
        waits = true;
        try {
            wait_readable(number);
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("closed while a task"));
        }
        ++told;
    });
    other.insert([&] {
        while (!waits) sleep_for(1ms);
        sleep_for(5ms);
        dup2(second[0], number);
        wait_readable(number);
        ++told;
    });
    other.insert([&] {
        while (!waits) sleep_for(1ms);
        sleep_for(20ms);
        second.write_to(1);
    });
    sequence.wait();
    other.wait();
    EXPECT_EQ(told, 2);
    close(number);
}

TEST_P(AwaitTest, NothingIsLeftBehind) {
    const Ends ends;
    runtime_.reset();
    const size_t before = open_descriptors();
    for (int i = 0; i < 20; ++i) {
        Runtime runtime(options(1));
        Sequence sequence(runtime);
        sequence.insert([&] {
            sleep_for(10us);
            EXPECT_EQ(wait_readable(ends[0], now() + 10us), Readiness::kTimeout);
        });
        sequence.wait();
        if (i % 4 == 0) runtime.switch_engine(engine_.name);
        sequence.insert([&] { sleep_for(10us); });
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(AwaitNativeTest, AHundredTasksTalkInPairs) {
    const int rounds = test::kSanitized ? 20 : 200;
    Runtime runtime;
    std::vector<Ends> pairs(50);
    std::atomic<int> heard{0};
    Sequence sequence(runtime);
    for (const Ends& ends : pairs)
        for (const size_t end : {size_t{0}, size_t{1}})
            sequence.insert([&ends, &heard, end, rounds] {
                for (int i = 0; i < rounds; ++i) {
                    if (end == 0) ends.write_to(0);
                    wait_readable(ends[end]);
                    heard += ends.read_from(end);
                    if (end == 1) ends.write_to(1);
                }
            });
    sequence.wait();
    EXPECT_EQ(heard, rounds * 100);
}

}  // namespace
}  // namespace heddle
