#include "heddle/offload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/cores.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/kernels.hpp"
#include "support/left_behind.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

using std::chrono::microseconds;
using testing::HasSubstr;

CpuSet all_cpus() {
    return allowance(Machine::detect()).usable;
}

class OffloadTest : public test::OnEachEngine {
  protected:
    [[nodiscard]] const std::string& engine() const { return engine_.name; }
    void in_parallel(int items, const std::function<void(int)>& body) const {
        test::in_parallel(engine(), items, body);
    }
    /// Runs something in parallel and tells where.
    void note(test::Places& places) const {
        in_parallel(64, [&](int) {
            places.note();
            test::spend(microseconds(20));
        });
    }
};
INSTANTIATE_TEST_SUITE_P(Engines, OffloadTest, test::engines(), test::engine_name);

TEST_P(OffloadTest, EveryThreadOfAKernelIsOnItsCpus) {
    Offload offload(engine());
    EXPECT_EQ(offload.engine(), engine());
    EXPECT_EQ(offload.cpus(), all_cpus());
    const CpuSet ends{all_cpus().first(), all_cpus().last()};
    for (const CpuSet& set : {CpuSet{ends.first()}, CpuSet{ends.last()}, ends, CpuSet{ends.first()}}) {
        test::Places places;
        CpuSet told;
        offload
            .spawn(
                [&] {
                    note(places);
                    told = kernel_cpus();
                },
                set)
            .wait();
        EXPECT_TRUE(set.contains(places.allowed())) << places.allowed().to_list() << " of " << set.to_list();
        EXPECT_TRUE(set.contains(places.seen())) << places.seen().to_list() << " of " << set.to_list();
        EXPECT_TRUE(set.contains(told));
    }
    EXPECT_TRUE(kernel_cpus().empty());
}

/// A kernel is bound, but not what is made in it.
TEST_P(OffloadTest, WhatIsMadeInAKernelMayUseAllCpus) {
    Offload offload(engine());
    CpuSet seen, inside;
    offload
        .spawn(
            [&] {
                seen = allowance(Machine::detect()).usable;
                inside = Runtime().cpus();
            },
            CpuSet{all_cpus().last()})
        .wait();
    EXPECT_EQ(seen.to_list(), all_cpus().to_list());
    EXPECT_EQ(inside.to_list(), all_cpus().to_list());
}

TEST_P(OffloadTest, AKernelHasAllOfItsCpusWhereNobodyElseHas) {
    if (all_cpus().count() < 2) GTEST_SKIP() << "skipped: one CPU";
    const CpuSet two{all_cpus().first(), all_cpus().last()};
    Offload offload(engine(), two);
    // Two items that wait for each other: only two threads can do that.
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> inside{0};
        offload
            .spawn([&] {
                in_parallel(2, [&](int) {
                    ++inside;
                    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
                    while (inside < 2 && std::chrono::steady_clock::now() < patience)
                        std::this_thread::yield();
                });
            })
            .wait();
        EXPECT_EQ(inside, 2);
    }
}

/// Those of OpenMP cannot become wider of their own accord: they leave to others what they cannot use.
TEST_P(OffloadTest, AKernelThatBeganWithOneCpuHasTheOtherAsSoonAsItCanUseIt) {
    if (all_cpus().count() < 2) GTEST_SKIP() << "skipped: one CPU";
    const CpuSet other{all_cpus().last()};
    Component owner("owner", other), third("third", {});
    Offload offload(engine(), CpuSet{all_cpus().first()} | other);
    std::atomic<bool> asks{false}, stop{false};
    std::atomic<int> rounds{0}, side_by_side{0};
    const Kernel kernel = offload.spawn([&] {
        while (!stop) {
            if (asks) (void)kernel_cpus();
            std::atomic<int> inside{0};
            int places[2] = {-1, -2};
            in_parallel(2, [&](int item) {
                const bool first = ++inside == 1;
                const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
                while (inside < 2 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
                if (first && inside < 2) return;
                places[item] = sched_getcpu();
            });
            if (places[0] >= 0 && places[1] >= 0 && places[0] != places[1]) ++side_by_side;
            ++rounds;
        }
    });
    EXPECT_TRUE(test::becomes_true([&] { return rounds > 2; }, std::chrono::seconds(20)));
    EXPECT_EQ(side_by_side, 0);
    (void)owner.lend();
    if (engine().starts_with("openmp")) {
        EXPECT_TRUE(test::becomes_true([&] { return third.borrow_cpu(other.first()) == Outcome::kSuccess; },
                                       std::chrono::seconds(20)));
        asks = true;
        (void)third.lend();
    }
    EXPECT_TRUE(test::becomes_true([&] { return side_by_side > 2; }, std::chrono::seconds(20)));
    stop = true;
    kernel.wait();
}

/// Its thread may still be in the engine's runtime, of which parts are destroyed then.
TEST_P(OffloadTest, AProgramMayEndAsSoonAsItsKernelHas) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto program = [&] {
        static Offload* for_good = nullptr;
        for_good = new Offload(engine());
        for_good->spawn([&] { in_parallel(8, [](int) {}); }).wait();
        std::exit(0);
    };
    for (int i = 0; i < 20; ++i) EXPECT_EXIT(program(), testing::ExitedWithCode(0), "");
}

TEST_P(OffloadTest, SpawnDoesNotWaitForTheKernel) {
    Offload offload(engine());
    BlockCondition go;
    std::atomic<int> told{0};
    std::vector<Kernel> kernels;
    kernels.push_back(offload.spawn([&] { go.block(); },
                                    [&](std::exception_ptr error) { told += error == nullptr ? 1 : 100; }));
    EXPECT_FALSE(kernels[0].done());
    EXPECT_EQ(told, 0);
    go.signal();
    kernels[0].wait();
    EXPECT_TRUE(kernels[0].done());
    EXPECT_EQ(told, 1);
    // Many more than CPUs or threads, and all without its help: this thread stays where it is.
    std::atomic<int> ran{0};
    const auto self = std::this_thread::get_id();
    std::atomic<bool> on_self{false};
    for (int i = 0; i < 3'000; ++i)
        (void)offload.spawn([&] {
            if (std::this_thread::get_id() == self) on_self = true;
            ++ran;
        });
    offload.wait();
    EXPECT_EQ(ran, 3'000);
    EXPECT_FALSE(on_self);
}

TEST_P(OffloadTest, SetsChangeWhileItRuns) {
    if (all_cpus().count() < 2) GTEST_SKIP() << "skipped: one CPU";
    const CpuSet first{all_cpus().first()}, last{all_cpus().last()};
    Offload offload(engine(), first);
    struct Round {
        CpuSet set;
        test::Places places;
    };
    std::vector<std::unique_ptr<Round>> rounds;
    BlockCondition next, done;
    bool over = false;
    const Kernel kernel = offload.spawn([&] {
        while (true) {
            next.block();
            if (over) return;
            // What was under way may end where it was.
            test::Places before;
            note(before);
            note(rounds.back()->places);
            done.signal();
        }
    });
    std::mt19937 random(7);
    for (int i = 0; i < 30; ++i) {
        rounds.push_back(std::make_unique<Round>());
        const auto kind = random() % 3;
        rounds.back()->set = kind == 0 ? first : kind == 1 ? last : first | last;
        offload.set_cpus(rounds.back()->set);
        EXPECT_EQ(offload.cpus(), rounds.back()->set);
        next.signal();
        done.block();
    }
    over = true;
    next.signal();
    kernel.wait();
    for (const auto& round : rounds) {
        EXPECT_TRUE(round->set.contains(round->places.seen()))
            << round->places.seen().to_list() << " of " << round->set.to_list();
        EXPECT_TRUE(round->set.contains(round->places.allowed()));
    }
}

TEST_P(OffloadTest, AnOwnerTakesItsCpuBackFromAKernel) {
    if (all_cpus().count() < 2) GTEST_SKIP() << "skipped: one CPU";
    const CpuSet mine{all_cpus().last()};
    Component owner("owner", mine);
    (void)owner.lend();
    Offload offload(engine(), CpuSet{all_cpus().first()} | mine);
    std::atomic<bool> stop{false};
    std::atomic<long> items{0};
    const Kernel kernel = offload.spawn([&] {
        while (!stop)
            in_parallel(8, [&](int) {
                test::spend(microseconds(50));
                ++items;
            });
    });
    for (int round = 0; round < 50; ++round) {
        const long before = items;
        while (items < before + 40) std::this_thread::yield();
        (void)owner.reclaim();
        const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (owner.check_cpu(mine.first()) != Outcome::kSuccess &&
               std::chrono::steady_clock::now() < patience)
            std::this_thread::yield();
        ASSERT_EQ(owner.check_cpu(mine.first()), Outcome::kSuccess) << "round " << round;
        (void)owner.lend();
    }
    stop = true;
    kernel.wait();
}

TEST_P(OffloadTest, KernelsThatWaitForEachOtherNeedOneCpuAlone) {
    Offload offload(engine(), CpuSet{all_cpus().first()});
    std::vector<BlockCondition> conditions(20);
    std::atomic<int> went_on{0};
    for (BlockCondition& condition : conditions)
        (void)offload.spawn([&] {
            condition.block();
            ++went_on;
        });
    const Kernel outer = offload.spawn([&] {
        // A kernel spawns one and waits for it.
        offload
            .spawn([&] {
                for (BlockCondition& condition : conditions) condition.signal();
            })
            .wait();
        ++went_on;
    });
    outer.wait();
    offload.wait();
    EXPECT_EQ(went_on, 21);
}

/// What of its runtime is still at work, or lingers, keeps no CPU that the other needs.
TEST_P(OffloadTest, AKernelThatWasWideWaitsForOneOnEachOfItsCpus) {
    Offload offload(engine());
    for (int round = 0; round < 30; ++round)
        offload
            .spawn([&] {
                in_parallel(8, [](int) { test::spend(microseconds(20)); });
                for (const int cpu : all_cpus()) offload.spawn([] {}, CpuSet{cpu}).wait();
            })
            .wait();
}

/// A CPU that comes while it goes to sleep is lent on at once.
TEST_P(OffloadTest, AKernelThatSleepsKeepsNoCpuThatComesMeanwhile) {
    const int first = all_cpus().first();
    Component third("third", {});
    Offload offload(engine());
    std::atomic<bool> stop{false};
    std::thread comes_and_goes([&] {
        std::minstd_rand random(7);
        while (!stop) {
            (void)third.acquire_cpu(first);
            test::spend(microseconds(random() % 20));
            (void)third.lend_cpu(first);
            test::spend(microseconds(1));
        }
    });
    for (int round = 0; round < 500; ++round)
        offload.spawn([&] { offload.spawn([] {}, CpuSet{first}).wait(); }).wait();
    stop = true;
    comes_and_goes.join();
}

/// A component's callback may run in the thread that ends a kernel.
TEST_P(OffloadTest, ACallbackMaySpawnAndMoveKernels) {
    const CpuSet all = all_cpus(), mine{all.first()};
    Offload offload(engine());
    for (int round = 0; round < 20; ++round) {
        Component waits("waits", {});
        std::atomic<int> came{0};
        std::vector<Kernel> more;
        (void)waits.on_enable_cpu([&](int cpu) {
            more.push_back(offload.spawn([] {}));
            EXPECT_EQ(all_cpus(), all) << "whoever's thread calls";
            offload.set_cpus(all_cpus());
            (void)waits.lend_cpu(cpu);
            ++came;
        });
        const Kernel kernel = offload.spawn([] { test::spend(microseconds(200)); }, mine);
        (void)waits.acquire_cpu(mine.first());
        kernel.wait();
        EXPECT_TRUE(test::becomes_true([&] { return came == 1; }, std::chrono::seconds(20)));
        (void)waits.detach();
        for (const Kernel& one : more) one.wait();
    }
}

TEST_P(OffloadTest, WhatIsWaitedForIsDone) {
    Offload offload(engine());
    for (int round = 0; round < 300; ++round) {
        const Kernel kernel = offload.spawn([] {});
        offload.wait();
        ASSERT_TRUE(kernel.done()) << "round " << round;
    }
}

TEST_P(OffloadTest, KernelsThatOthersSpawnAreWaitedForAtItsEnd) {
    std::atomic<int> ran{0};
    std::function<void(Offload&, int)> chain;
    chain = [&](Offload& offload, int more) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (more > 0) (void)offload.spawn([&, more] { chain(offload, more - 1); });
        ++ran;
    };
    {
        Offload offload(engine());
        (void)offload.spawn([&] { chain(offload, 9); });
    }
    EXPECT_EQ(ran, 10);
}

TEST_P(OffloadTest, WhatAKernelThrowsReachesItsWait) {
    Offload offload(engine());
    bool told = false;
    const Kernel kernel = offload.spawn([] { throw std::runtime_error("no pivot"); },
                                        [&](std::exception_ptr error) { told = error != nullptr; });
    for (int i = 0; i < 2; ++i) {
        try {
            kernel.wait();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "no pivot");
        }
    }
    EXPECT_TRUE(told);
    offload.wait();
}

TEST_P(OffloadTest, WaitingForOneselfIsAnError) {
    Offload offload(engine());
    BlockCondition known;
    std::unique_ptr<Kernel> self;
    int refused = 0;
    const Kernel kernel = offload.spawn([&] {
        known.block();
        for (const auto& wait :
             {std::function([&] { self->wait(); }), std::function([&] { offload.wait(); })}) {
            try {
                wait();
            } catch (const Error& error) {
                if (error.code() == ErrorCode::kInvalidArgument) ++refused;
            }
        }
    });
    self = std::make_unique<Kernel>(kernel);
    known.signal();
    kernel.wait();
    EXPECT_EQ(refused, 2);
}

TEST_P(OffloadTest, SetsThatCannotBeAreRefused) {
    Offload offload(engine(), CpuSet{all_cpus().first()});
    const auto message = [](auto&& call) -> std::string {
        try {
            call();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
            return error.what();
        }
        return "nothing";
    };
    bool ran = false;
    EXPECT_THAT(message([&] { (void)offload.spawn([&] { ran = true; }, CpuSet()); }), HasSubstr("empty set"));
    EXPECT_THAT(message([&] { (void)offload.spawn([&] { ran = true; }, CpuSet{4000}); }),
                HasSubstr("were not given CPUs 4000"));
    EXPECT_THAT(message([&] { (void)offload.spawn({}); }), HasSubstr("function"));
    EXPECT_THAT(message([&] { offload.set_cpus({}); }), HasSubstr("empty set"));
    EXPECT_THAT(message([&] { offload.set_cpus(CpuSet{4000}); }), HasSubstr("may not use CPUs 4000"));
    EXPECT_THAT(message([&] { Offload(engine(), CpuSet{4000}); }), HasSubstr("may not use CPUs 4000"));
    offload.wait();
    EXPECT_FALSE(ran);
    EXPECT_EQ(offload.cpus(), CpuSet{all_cpus().first()});
}

TEST_P(OffloadTest, StartsAndStopsManyTimesWithoutATrace) {
    const auto once = [&] {
        Offload offload(engine());
        std::atomic<int> ran{0};
        for (int i = 0; i < 2; ++i) (void)offload.spawn([&] { in_parallel(4, [&](int) { ++ran; }); });
        offload.wait();
        ASSERT_EQ(ran, 8);
    };
    test::expect_nothing_left_behind(once, test::kSanitized ? 30 : 250);
}

TEST(OffloadErrorsTest, EnginesThatAreNotAreSaidSo) {
    try {
        Offload offload("nanos6");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        EXPECT_THAT(error.what(), HasSubstr("heddle knows native"));
    }
    EXPECT_THROW((void)kernel_runtime(), Error);
}

}  // namespace
}  // namespace heddle
