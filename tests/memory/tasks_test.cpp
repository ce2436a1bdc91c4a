// Insertions when allocations fail, from each one on: a task is inserted and runs once, or is refused and
// never runs; and once there is memory again all goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "heddle/error.hpp"
#include "heddle/recording.hpp"
#include "support/scarce_memory.hpp"

namespace heddle::test {
namespace {

/// Everything that may be inserted, one by one, without memory from some allocation on.
class InsertionScene {
  public:
    static constexpr int kSteps = 40;

    /// The one worker is held, so that what is counted is insertion alone; this thread's queue has room.
    InsertionScene() {
        held_up_.insert([this] {
            held_ = true;
            held_.notify_one();
            go_on_.wait(false);
        });
        held_.wait(false);
        held_up_.insert([] {});
    }
    ~InsertionScene() { go_on(); }
    void go_on() {
        go_on_ = true;
        go_on_.notify_one();
    }

    void insert(Sequence& sequence, int step) {
        const auto one = [this](long& v) { ++v, ++ran_; };
        const CpuSet cpus{runtime_.cpus().first()};
        switch (step % 8) {
            case 0:
                return sequence.insert([this] { ++ran_; });
            case 1:
                return sequence.insert([this](const long&, const long&, long& v) { ++v, ++ran_; }, in(x_),
                                       in(y_), inout(z_));
            case 2:
                return sequence.insert({.priority = 3, .name = "first"}, one, commute(x_));
            case 3:
                return sequence.insert(one, redux(y_));
            case 4:
                return (void)sequence.async([this](const long& v) { return ++ran_, v; }, in(y_));
            case 5:
                return sequence.insert(
                    {.cpus = cpus}, [this](std::span<const long>, long& v) { ++v, ++ran_; }, in(many_),
                    commute(z_));
            case 6:
                return sequence.insert([this](std::span<long> v) { v[3] += 1, ++ran_; }, redux(many_));
            default:
                return sequence.insert([this](const long&) { ++ran_; }, in(x_));
        }
    }
    void record(Recording& recording, int step) {
        const auto one = [this](long& v) { ++v, ++ran_; };
        switch (step % 4) {
            case 0:
                return recording.insert(one, inout(x_));
            case 1:
                return recording.insert({.priority = 1}, one, commute(z_));
            case 2:
                return recording.insert(one, redux(y_));
            default:
                return recording.insert([this](const long&, long& v) { ++v, ++ran_; }, in(y_), inout(x_));
        }
    }
    /// Whether `step` found memory.
    template <class Step>
    bool scarce(Step step) {
        memory.counts = true;
        bool done = false, said = true;
        try {
            step();
            done = true;
        } catch (const Error& error) {
            memory.counts = false;
            said = error.code() == ErrorCode::kLimit;
        } catch (const std::bad_alloc&) {
            // There was none for the message either.
        }
        memory.counts = false;
        EXPECT_TRUE(said);
        return done;
    }
    void check(Sequence& sequence, int expected) {
        go_on();
        try {
            sequence.wait();
        } catch (const std::exception& error) {
            // A private copy for which there was no memory.
            failed_ = true;
        }
        if (!failed_) {
            EXPECT_EQ(ran_, expected);
        }
        EXPECT_LE(ran_, expected);
        const int before = ran_;
        for (int step = 0; step < kSteps; ++step) insert(sequence, step);
        sequence.wait();
        EXPECT_EQ(ran_, before + kSteps);
    }

    Runtime runtime_{RuntimeOptions{.engine = "native", .cpus = {}, .workers = 1}};
    Scalar<long> x_{runtime_, 0}, y_{runtime_, 0}, z_{runtime_, 0};
    Vector<long> many_{runtime_, 1'000};
    std::atomic<bool> held_{false}, go_on_{false};
    Sequence held_up_{runtime_};
    std::atomic<int> ran_{0};
    bool failed_ = false;
};

TEST(TasksWithoutMemory, EachInsertionIsWholeOrWasNone) {
    bool enough = false;
    for (long nth = 0; !enough; ++nth) {
        SCOPED_TRACE("after allocation " + std::to_string(nth));
        InsertionScene scene;
        Sequence sequence(scene.runtime_);
        memory = {};
        memory.exhausted_after = nth;
        int inserted = 0;
        for (int step = 0; step < InsertionScene::kSteps; ++step)
            if (scene.scarce([&] { scene.insert(sequence, step); })) ++inserted;
        enough = !memory.exhausted;
        memory = {};
        scene.check(sequence, inserted);
        ASSERT_LT(nth, 10'000);
    }
}

TEST(TasksWithoutMemory, ARecordingToo) {
    bool enough = false;
    for (long nth = 0; !enough; ++nth) {
        SCOPED_TRACE("after allocation " + std::to_string(nth));
        InsertionScene scene;
        Sequence sequence(scene.runtime_);
        Recording recording(scene.runtime_);
        memory = {};
        memory.exhausted_after = nth;
        int recorded = 0, replayed = 0;
        for (int step = 0; step < InsertionScene::kSteps; ++step)
            if (scene.scarce([&] { scene.record(recording, step); })) ++recorded;
        for (int i = 0; i < 3; ++i)
            if (scene.scarce([&] { recording.replay(sequence); })) ++replayed;
        enough = !memory.exhausted;
        memory = {};
        EXPECT_EQ(recording.size(), static_cast<size_t>(recorded));
        scene.check(sequence, recorded * replayed);
        const int before = scene.ran_;
        recording.replay(sequence);
        sequence.wait();
        EXPECT_EQ(scene.ran_, before + recorded);
        ASSERT_LT(nth, 10'000);
    }
}

TEST(TasksWithoutMemory, DataAndSequencesAreRefused) {
    Runtime runtime;
    for (long nth = 0; nth < 2; ++nth) {
        memory = {};
        memory.exhausted_after = nth;
        memory.counts = true;
        bool refused = false;
        try {
            const Vector<long> data(runtime, 1'000);
        } catch (const std::exception&) {
            refused = true;
        }
        memory = {};
        EXPECT_TRUE(refused);
    }
}

}  // namespace
}  // namespace heddle::test
