// Threads of a foreign runtime run where, and only where, the provider lets them.
#include "engines/seats/seats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace heddle {
namespace {

/// A provider that gives what the test says.
class FakeCpus final : public CpuProvider {
  public:
    void start(std::function<void()> changed) override { changed_ = std::move(changed); }
    void stop() override { stopped = true; }
    CpuSet usable() const override {
        const std::lock_guard guard(mutex_);
        return usable_;
    }
    void set_demand(int cpus) override { demand = cpus; }
    void returned(const CpuSet& cpus) override {
        has_returned |= cpus;
        owed -= cpus;
        if (while_returning) std::exchange(while_returning, nullptr)();
    }
    CpuSet to_return() const override { return owed; }
    void give_back(const CpuSet& cpus) override {
        const std::lock_guard guard(mutex_);
        usable_ -= cpus;
        given_back |= cpus;
    }
    bool shares() const override { return true; }

    void let(const CpuSet& cpus) {
        {
            const std::lock_guard guard(mutex_);
            usable_ = cpus;
        }
        changed_();
    }

    std::atomic<int> demand{0};
    CpuSet has_returned, given_back, owed;
    std::function<void()> while_returning;
    bool stopped = false;

  private:
    mutable std::mutex mutex_;
    CpuSet usable_;
    std::function<void()> changed_;
};

class NobodysHost final : public EngineHost {
  public:
    Lane& lane() override { throw std::logic_error("no lanes here"); }
    Task* run(Lane*&, Task&) noexcept override { return nullptr; }
    Task* run_here(Lane&, Task&) noexcept override { return nullptr; }
    void flush(Lane&) noexcept override {}
    uint32_t in_line() const noexcept override { return 0; }
    uint32_t started_in_line() const noexcept override { return 0; }
    Task* next_in_line(Lane&, uint32_t) noexcept override { return nullptr; }
    bool put_back(Lane&, Task&) noexcept override { return false; }
    LaneTable& all_lanes() noexcept override { std::terminate(); }
    PollingServices& polling_services() noexcept override { std::terminate(); }
    bool poll() noexcept override { return false; }
    int nearest(const CpuSet&, const CpuSet& free) const override { return free.first(); }
    TaskFrame* frame() noexcept override { return nullptr; }
    TaskFrame* swap_frame(TaskFrame*) noexcept override { return nullptr; }
    bool stay_on(const CpuSet&, const std::function<void()>&) override { return false; }
    std::unique_ptr<Engine> make_native(const EngineOptions&) override { throw std::logic_error("not used"); }
};

class SeatsTest : public testing::Test {
  protected:
    NobodysHost host_;
    FakeCpus cpus_;
    // On CPUs that nobody has: threads are not bound.
    Seats seats_{EngineOptions{host_, Machine::synthetic("pu:4"), cpus_, CpuSet::range(0, 4), 2, false}};
};

void wait_for(const auto& condition) {
    while (!condition()) std::this_thread::yield();
}

TEST_F(SeatsTest, AThreadWaitsForACpuAndGivesItBack) {
    EXPECT_EQ(cpus_.demand, 0);
    std::thread thread([&] {
        Seats::Seat& seat = seats_.enter();
        EXPECT_TRUE(seats_.sit_down(seat));
        EXPECT_TRUE(seats_.end(seat));
        EXPECT_TRUE(seats_.begin(seat));
        EXPECT_TRUE(seats_.end(seat));
        seats_.leave(seat);
    });
    wait_for([&] { return cpus_.demand == 1; });
    cpus_.let(CpuSet{2});
    thread.join();
    EXPECT_EQ(cpus_.demand, 0);
    EXPECT_EQ(cpus_.given_back.to_list(), "2");
}

TEST_F(SeatsTest, ACpuThatIsAskedBackIsLeftAfterTheTask) {
    cpus_.let(CpuSet{1});
    std::thread thread([&] {
        Seats::Seat& seat = seats_.enter();
        // What comes without need goes back at once; the demand brings it again.
        EXPECT_TRUE(seats_.begin(seat));
        cpus_.let(CpuSet());
        EXPECT_TRUE(seat.should_leave());
        EXPECT_TRUE(cpus_.has_returned.empty());
        EXPECT_FALSE(seats_.end(seat));
        EXPECT_EQ(cpus_.has_returned.to_list(), "3");
        seats_.leave(seat);
    });
    wait_for([&] { return cpus_.demand == 1; });
    cpus_.let(CpuSet{3});
    thread.join();
}

TEST_F(SeatsTest, WhatComesAndGoesWhileItIsReturnedIsReturnedAgain) {
    std::thread giver([&] {
        wait_for([&] { return cpus_.demand == 1; });
        cpus_.let(CpuSet{3});
    });
    Seats::Seat& seat = seats_.enter();
    EXPECT_TRUE(seats_.begin(seat));
    giver.join();
    cpus_.while_returning = [&] {
        cpus_.let(CpuSet{3});
        cpus_.owed = CpuSet{3};
        cpus_.let(CpuSet());
    };
    cpus_.let(CpuSet());
    EXPECT_FALSE(seats_.end(seat));
    EXPECT_TRUE(cpus_.owed.empty());
    seats_.leave(seat);
}

TEST_F(SeatsTest, WhoGivesUpWaitingHasNoDemand) {
    Seats::Seat& seat = seats_.enter();
    EXPECT_FALSE(seats_.begin(seat, [&] { return cpus_.demand == 1; }));
    EXPECT_EQ(cpus_.demand, 0);
    seats_.leave(seat);
}

TEST_F(SeatsTest, NoMoreSeatsThanWorkersAndIdleOnesAreTakenForTasks) {
    Seats::Seat& first = seats_.enter();
    Seats::Seat& second = seats_.enter();
    Seats::Seat& third = seats_.enter();
    std::thread giver([&] {
        wait_for([&] { return cpus_.demand == 1; });
        cpus_.let(CpuSet{0});
        wait_for([&] { return cpus_.demand == 2; });
        cpus_.let(CpuSet::range(0, 4));
    });
    EXPECT_TRUE(seats_.begin(first));
    EXPECT_TRUE(seats_.begin(second));
    giver.join();
    EXPECT_EQ(cpus_.demand, 2);
    EXPECT_TRUE(seats_.end(first));
    EXPECT_TRUE(seats_.begin(third));  // on the first one's
    EXPECT_TRUE(seats_.end(third));
    EXPECT_TRUE(seats_.end(second));
    for (Seats::Seat* seat : {&first, &second, &third}) seats_.leave(*seat);
    EXPECT_EQ(cpus_.usable().count(), 0);
}

TEST_F(SeatsTest, WhoNeedNotRunTasksTakesASeatThatIsFreeAlone) {
    Seats::Seat& worker = seats_.enter();
    Seats::Seat& other = seats_.enter();
    EXPECT_FALSE(seats_.begin_if_free(other)) << "there is no CPU";
    EXPECT_EQ(cpus_.demand, 0) << "and none is asked for";
    std::thread giver([&] {
        wait_for([&] { return cpus_.demand == 1; });
        cpus_.let(CpuSet{3});
    });
    EXPECT_TRUE(seats_.begin(worker));
    giver.join();
    EXPECT_FALSE(seats_.begin_if_free(other)) << "the worker is in a task";
    EXPECT_TRUE(seats_.end(worker));
    EXPECT_TRUE(seats_.begin_if_free(other));
    EXPECT_EQ(other.cpu(), 3);
    EXPECT_FALSE(other.should_leave());
    seats_.leave(other);
    seats_.leave(worker);
    EXPECT_EQ(cpus_.usable().count(), 0);
}

/// Two threads that are bound to one CPU: each takes the seat while the other is between two tasks, and they
/// never wait.
class TakenSeats : public SeatsTest {
  protected:
    TakenSeats() {
        std::thread giver([&] {
            wait_for([&] { return cpus_.demand == 1; });
            cpus_.let(CpuSet{0});
        });
        EXPECT_TRUE(seats_.begin(first_));
        giver.join();
        EXPECT_TRUE(seats_.end(first_));
    }
    ~TakenSeats() override {
        for (Seats::Seat* seat : {&first_, &second_}) seats_.leave(*seat);
        EXPECT_EQ(cpus_.demand, 0);
        EXPECT_EQ(cpus_.usable().count(), 0);
    }
    void run(Seats::Seat& seat) {
        EXPECT_TRUE(seats_.begin(seat));
        EXPECT_TRUE(seats_.end(seat));
    }
    /// Until it was in time: a busy machine may take longer from one to the next.
    void take_it_from_each_other() {
        for (int times = 0; cpus_.demand < 2 && times < 10'000; ++times)
            run(times % 2 == 0 ? second_ : first_);
        ASSERT_EQ(cpus_.demand, 2);
    }

    Seats::Seat& first_ = seats_.enter();
    Seats::Seat& second_ = seats_.enter();
};

TEST_F(TakenSeats, WhoOftenTakeOneFromEachOtherAskForASecond) {
    for (int times = 0; cpus_.usable().count() < 2 && times < 1'000; ++times) {
        take_it_from_each_other();
        cpus_.let(CpuSet::range(0, 2));
    }
    EXPECT_EQ(cpus_.usable().to_list(), "0-1") << "it is kept for the other";
    EXPECT_TRUE(seats_.begin(first_));
    EXPECT_TRUE(seats_.begin(second_)) << "each has its own now";
    EXPECT_TRUE(seats_.end(first_));
    EXPECT_TRUE(seats_.end(second_));
    for (int look = 0; look < 2; ++look) (void)seats_.clear_idle();
    EXPECT_EQ(cpus_.demand, 0);
}

TEST_F(TakenSeats, WhoTakeItNowAndThenDoNot) {
    for (int times = 0; times < 4; ++times) {
        std::this_thread::sleep_for(std::chrono::milliseconds(6));
        run(times % 2 == 0 ? second_ : first_);
        EXPECT_EQ(cpus_.demand, 1);
    }
}

TEST_F(TakenSeats, WhoDoesNothingMoreHasNoDemand) {
    take_it_from_each_other();
    (void)seats_.clear_idle();
    EXPECT_LE(cpus_.demand, 1);
}

TEST_F(SeatsTest, WhoDidNothingForTwoLooksLosesItsSeat) {
    cpus_.let(CpuSet{0});
    Seats::Seat& seat = seats_.enter();
    std::thread giver([&] {
        wait_for([&] { return cpus_.demand == 1; });
        cpus_.let(CpuSet{0});
    });
    EXPECT_TRUE(seats_.begin(seat));
    giver.join();
    EXPECT_TRUE(seats_.clear_idle());  // it is in a task
    EXPECT_TRUE(seats_.end(seat));
    EXPECT_FALSE(seats_.clear_idle());
    EXPECT_EQ(cpus_.demand, 0);
    seats_.leave(seat);
}

TEST_F(SeatsTest, WhoWaitsIsToldOfTheEnd) {
    std::thread thread([&] {
        Seats::Seat& seat = seats_.enter();
        EXPECT_FALSE(seats_.sit_down(seat));
        EXPECT_FALSE(seats_.begin(seat));
        seats_.leave(seat);
    });
    wait_for([&] { return cpus_.demand == 1; });
    seats_.stop();
    thread.join();
}

TEST_F(SeatsTest, ManyThreadsWhileCpusComeAndGo) {
    std::atomic<int> at_work{0};
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            Seats::Seat& seat = seats_.enter();
            for (int task = 0; task < 2'000 && seats_.begin(seat); ++task) {
                EXPECT_LE(++at_work, 2);
                --at_work;
                (void)seats_.end(seat);
            }
            seats_.leave(seat);
        });
    std::thread giver([&] {
        for (int i = 0; !over; ++i) {
            cpus_.let(i % 3 == 0 ? CpuSet() : i % 3 == 1 ? CpuSet{i % 4} : CpuSet::range(0, 4));
            std::this_thread::yield();
        }
        cpus_.let(CpuSet());
    });
    for (std::thread& thread : threads) thread.join();
    over = true;
    giver.join();
    EXPECT_EQ(cpus_.demand, 0);
}

}  // namespace
}  // namespace heddle
