#include "fibers/fiber.hpp"

#include <gtest/gtest.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/paused.hpp"

using heddle::Fiber;
using heddle::FloatModes;
using heddle::Handoff;
using heddle::Stack;
using heddle::StackCache;
using heddle::StackPool;
using heddle::test::Paused;

namespace {

struct FiberTest : testing::Test {
    StackPool pool;
    StackCache cache{pool};
};

void in_another_thread(Paused& paused) {
    std::thread([&] { paused.resume(); }).join();
}

/// Keeps more values over a pause than there are registers that outlive calls.
[[gnu::noinline]] std::array<uint64_t, 16> values_over_a_pause(Paused& self, uint64_t seed) {
    std::array<uint64_t, 16> before{}, after{};
    uint64_t a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13, f = seed * 17,
             g = seed * 19;
    before = {a, b, c, d, e, f, g};
    self.pause();
    after = {a, b, c, d, e, f, g};
    EXPECT_EQ(before, after);
    return after;
}

}  // namespace

TEST_F(FiberTest, GoesOnWhereItPaused) {
    std::string said;
    Paused paused(cache, [&](Paused& self) {
        said += "1";
        self.pause();
        said += "2";
        self.pause();
        said += "3";
    });
    EXPECT_EQ(said, "");
    for (const char* const expected : {"1", "12", "123"}) {
        EXPECT_FALSE(paused.ended());
        paused.resume();
        EXPECT_EQ(said, expected);
    }
    EXPECT_TRUE(paused.ended());
}

TEST_F(FiberTest, KeepsItsRegistersAndValues) {
    std::vector<std::unique_ptr<Paused>> all;
    std::vector<std::array<uint64_t, 16>> results(8);
    for (size_t i = 0; i < results.size(); ++i)
        all.push_back(std::make_unique<Paused>(
            cache, [&, i](Paused& self) { results[i] = values_over_a_pause(self, i + 1); }));
    for (const auto& paused : all) paused->resume();
    for (const auto& paused : all) in_another_thread(*paused);
    for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i][6], (i + 1) * 19);
}

TEST_F(FiberTest, HandoffRunsFirstOnTheSideThatIsSwitchedTo) {
    std::string said;
    Paused paused(cache, [&](Paused& self) {
        said += "began ";
        self.pause({[](void* text) noexcept { *static_cast<std::string*>(text) += "handed "; }, &said});
        said += "again";
    });
    paused.resume();
    EXPECT_EQ(said, "began handed ");
    paused.resume();
    EXPECT_EQ(said, "began handed again");
}

TEST_F(FiberTest, HandoffOfTheFirstSwitchRunsBeforeTheEntry) {
    struct Seen {
        Fiber thread;
        Fiber* fiber = nullptr;
        std::string said;
    } seen;
    Stack& stack = cache.take();
    Fiber fiber(
        stack.span(),
        [](void* argument) {
            auto& all = *static_cast<Seen*>(argument);
            all.said += "entry";
            Fiber::exit_to(*all.fiber, all.thread);
        },
        &seen);
    seen.fiber = &fiber;
    Fiber::switch_to(
        seen.thread, fiber,
        {[](void* argument) noexcept { static_cast<Seen*>(argument)->said += "handoff "; }, &seen});
    EXPECT_EQ(seen.said, "handoff entry");
    cache.give_back(stack);
}

TEST_F(FiberTest, HandoffOfTheLastSwitchMayDestroyWhatWasLeft) {
    struct Job {
        StackCache& cache;
        Fiber& thread;
        Stack& stack;
        std::unique_ptr<Fiber> fiber;
    };
    Fiber thread;
    const void* bottom = nullptr;
    for (int i = 0; i < 3; ++i) {
        Job job{cache, thread, cache.take(), nullptr};
        if (i > 0) {
            EXPECT_EQ(job.stack.span().bottom, bottom);  // the same stack each time
        }
        bottom = job.stack.span().bottom;
        job.fiber = std::make_unique<Fiber>(
            job.stack.span(),
            [](void* argument) {
                auto& self = *static_cast<Job*>(argument);
                Fiber::exit_to(*self.fiber, self.thread,
                               {[](void* left) noexcept {
                                    auto& ended = *static_cast<Job*>(left);
                                    ended.fiber.reset();
                                    ended.cache.give_back(ended.stack);
                                },
                                &self});
            },
            &job);
        Fiber::switch_to(thread, *job.fiber);
        EXPECT_EQ(job.fiber, nullptr);
    }
}

TEST_F(FiberTest, MayRunAndEndElsewhereWhileItsHandoffStillRuns) {
    struct Meeting {
        std::atomic<bool> told{false}, over{false};
    } meeting;
    Paused paused(cache, [&](Paused& self) {
        self.pause({[](void* argument) noexcept {
                        auto& both = *static_cast<Meeting*>(argument);
                        both.told = true;
                        both.told.notify_one();
                        both.over.wait(false);
                    },
                    &meeting});
    });
    std::thread other([&] {
        meeting.told.wait(false);
        paused.resume();
        meeting.over = true;
        meeting.over.notify_one();
    });
    paused.resume();
    EXPECT_TRUE(paused.ended());
    other.join();
}

TEST_F(FiberTest, ThrowsAndCatchesWithin) {
    std::string caught;
    Paused paused(cache, [&](Paused& self) {
        try {
            struct PausesAsItGoes {
                Paused& self;
                int& uncaught;
                ~PausesAsItGoes() {
                    self.pause();
                    uncaught = std::uncaught_exceptions();
                }
            };
            int uncaught = 0;
            try {
                const PausesAsItGoes on_the_way{self, uncaught};
                throw std::runtime_error("within");
            } catch (const std::exception&) {
                EXPECT_EQ(uncaught, 1);
                throw;
            }
        } catch (const std::exception& error) {
            caught = error.what();
        }
    });
    paused.resume();
    EXPECT_EQ(std::uncaught_exceptions(), 0);  // that one is the fiber's
    in_another_thread(paused);
    EXPECT_EQ(caught, "within");
    EXPECT_TRUE(paused.ended());
}

TEST_F(FiberTest, PausesInACatchAndRethrowsInAnotherThread) {
    std::string caught;
    Paused first(cache, [&](Paused& self) {
        try {
            try {
                throw std::runtime_error("first");
            } catch (...) {
                self.pause();
                throw;
            }
        } catch (const std::exception& error) {
            caught = error.what();
        }
    });
    Paused second(cache, [](Paused& self) {
        try {
            throw std::logic_error("second");
        } catch (const std::exception&) {
            self.pause();
            EXPECT_THROW(std::rethrow_exception(std::current_exception()), std::logic_error);
        }
    });
    first.resume();
    second.resume();
    EXPECT_EQ(std::current_exception(), nullptr);  // those two are the fibers'
    in_another_thread(first);
    EXPECT_EQ(caught, "first");
    second.resume();
    EXPECT_TRUE(second.ended());
}

TEST_F(FiberTest, KeepsItsFloatModesAndLeavesTheThreadIts) {
    const int before = std::fegetround();
    int within = -1;
    Paused paused(cache, [&](Paused& self) {
        std::fesetround(FE_UPWARD);
        self.pause();
        within = std::fegetround();
        std::fesetround(FE_TONEAREST);
    });
    paused.resume();
    EXPECT_EQ(std::fegetround(), before);
    std::thread([&] {
        std::fesetround(FE_DOWNWARD);
        paused.resume();
        EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
    }).join();
    EXPECT_EQ(within, FE_UPWARD);
}

TEST(FloatModes, AreAppliedWhereTheyDiffer) {
    const FloatModes usual = FloatModes::current();
    const volatile double one = 1, three = 3;
    std::feclearexcept(FE_ALL_EXCEPT);
    std::fesetround(FE_TOWARDZERO);
    const FloatModes changed = FloatModes::current();
    EXPECT_FALSE(changed == usual);
    const volatile double third = one / three;
    EXPECT_LT(third, 1);
    usual.apply();
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    EXPECT_TRUE(FloatModes::current() == usual);
    EXPECT_NE(std::fetestexcept(FE_INEXACT), 0);  // what has occurred has occurred
    std::feclearexcept(FE_ALL_EXCEPT);
    EXPECT_TRUE(FloatModes::current() == usual);  // and is no mode
}

TEST_F(FiberTest, UnwindersFindTheEndOfItsStack) {
    int frames = 0;
    _Unwind_Reason_Code reason = _URC_NO_REASON;
    Paused paused(cache, [&](Paused&) {
        reason = _Unwind_Backtrace(
            [](_Unwind_Context*, void* count) {
                return ++*static_cast<int*>(count) < 100 ? _URC_NO_REASON : _URC_NORMAL_STOP;
            },
            &frames);
    });
    paused.resume();
    EXPECT_EQ(reason, _URC_END_OF_STACK);
    EXPECT_GE(frames, 3);
    EXPECT_LT(frames, 50);
}
