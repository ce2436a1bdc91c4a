// All threads of a program run out of memory at once, from each allocation on, while tasks are inserted and
// wait for one another: each task runs once or is refused, each wait ends or is refused, and once there is
// memory again all goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <string>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/recording.hpp"
#include "heddle/task.hpp"
#include "support/scarce_memory.hpp"

namespace heddle::test {
namespace {

class WaitingScene {
  public:
    explicit WaitingScene(int workers) : runtime_({.engine = "native", .cpus = {}, .workers = workers}) {
        recording_.insert([this](long& v) { ++v, ++ran_; }, inout(y_));
        recording_.insert([this](const long&) { ++ran_; }, in(y_));
    }
    void play() {
        for (int round = 0; round < kRounds; ++round) {
            a_pause(round);
            a_future();
            children();
            a_replay();
            others();
        }
        (void)try_to([&] { sequence_.wait(); });
    }
    /// With memory again.
    void check() {
        signals_.wait();
        sequence_.wait();
        EXPECT_EQ(ran_, inserted_);
        EXPECT_EQ(wrong_, 0);
        for (int i = 0; i < 100; ++i) sequence_.insert([this](long& v) { ++v, ++ran_; }, inout(x_));
        recording_.replay(sequence_);
        sequence_.wait();
        EXPECT_EQ(ran_, inserted_ + 102);
    }

  private:
    static constexpr int kRounds = 6;

    /// True: it was made; false: it was refused for want of memory.
    template <class Step>
    bool try_to(Step step) {
        try {
            step();
            return true;
        } catch (const Error& error) {
            wrong_ += error.code() != ErrorCode::kLimit;
        } catch (const std::bad_alloc&) {
            // There was none for the message either.
        }
        return false;
    }
    void insert_or_refuse(auto... insertion) {
        if (try_to([&] { sequence_.insert(insertion...); })) ++inserted_;
    }

    /// Two tasks, of which one waits for the other; if only the first was inserted, this thread goes on for
    /// the second.
    void a_pause(int round) {
        BlockCondition& condition = conditions_[static_cast<size_t>(round)];
        const int before = inserted_;
        insert_or_refuse([this, &condition] {
            ++ran_;
            (void)try_to([&] { condition.block(); });
        });
        if (inserted_ == before) return;
        const auto signal = [&condition] { condition.signal(); };
        if (!try_to([&] { signals_.insert(signal); })) signal();
    }
    void a_future() {
        Future<int> future;
        if (!try_to([&] { future = sequence_.async([this] { return ++ran_, 7; }); })) return;
        ++inserted_;
        insert_or_refuse([this, future] {
            ++ran_;
            int value = 7;
            (void)try_to([&] { value = future.get(); });
            wrong_ += value != 7;
        });
    }
    void children() {
        insert_or_refuse(
            [this](long& v) {
                ++ran_;
                int begun = 0;
                std::atomic<int> ran{0};
                (void)try_to([&] {
                    Sequence sequence(runtime_);
                    for (int i = 0; i < 3; ++i)
                        if (try_to([&] { sequence.insert([&ran](const long&) { ++ran; }, in(y_)); })) ++begun;
                    (void)try_to([&] { sequence.wait(); });
                });
                wrong_ += ran != begun;
                ++v;
            },
            inout(x_));
    }
    void a_replay() {
        if (try_to([&] { recording_.replay(sequence_); })) inserted_ += 2;
    }
    void others() {
        insert_or_refuse(
            TaskOptions{.priority = 2}, [this](long& v) { ++v, ++ran_; }, commute(z_));
        insert_or_refuse([this](const long&) { ++ran_; }, in(z_));
        (void)try_to([&] { (void)z_.get(); });
    }
    Runtime runtime_;
    Scalar<long> x_{runtime_, 0}, y_{runtime_, 0}, z_{runtime_, 0};
    std::vector<BlockCondition> conditions_{kRounds};
    std::atomic<int> ran_{0}, wrong_{0};
    int inserted_ = 0;
    Recording recording_{runtime_};
    Sequence signals_{runtime_}, sequence_{runtime_};
};

class WaitsWithoutMemory : public testing::TestWithParam<int> {};

TEST_P(WaitsWithoutMemory, EndOrAreRefusedAndNothingIsLost) {
    bool enough = false;
    for (long nth = 0; !enough; ++nth) {
        SCOPED_TRACE("after allocation " + std::to_string(nth));
        WaitingScene scene(GetParam());
        memory_of_all.limit(nth);
        scene.play();
        enough = memory_of_all.lift();
        scene.check();
        ASSERT_LT(nth, 10'000);
    }
}

INSTANTIATE_TEST_SUITE_P(Workers, WaitsWithoutMemory, testing::Values(1, 2));

}  // namespace
}  // namespace heddle::test
