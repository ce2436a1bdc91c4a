// A WorkerPool whose CPUs come back, or come and go, while it tells that it has left them.
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <optional>

#include "cores/worker_pool.hpp"
#include "support/wait_until.hpp"
#include "support/work_queue.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using test::becomes_true;
using test::Queue;
using test::quick;

const Machine kMachine = Machine::synthetic("core:4 pu:1");

/// Gives CPU 3, takes it, and does something else while it is returned for the first time.
class Hasty final : public CpuProvider {
  public:
    explicit Hasty(std::function<void()> at_first_return) : at_first_return_(std::move(at_first_return)) {}
    void start(std::function<void()> changed) override { changed_ = std::move(changed); }
    void stop() override {}
    CpuSet usable() const override {
        const std::lock_guard guard(mutex_);
        return usable_;
    }
    void set_demand(int) override {}
    void returned(const CpuSet&) override {
        if (++returns == 1) at_first_return_();
    }
    CpuSet to_return() const override { return returns == 1 && usable().empty() ? CpuSet{3} : CpuSet(); }
    void give_back(const CpuSet&) override {}
    bool shares() const override { return false; }
    void let(const CpuSet& cpus) {
        {
            const std::lock_guard guard(mutex_);
            usable_ = cpus;
        }
        changed_();
    }
    std::atomic<int> returns = 0;

  private:
    const std::function<void()> at_first_return_;
    mutable std::mutex mutex_;
    CpuSet usable_;
    std::function<void()> changed_;
};

TEST(WorkerPoolReturns, WhatComesAndGoesWhileItIsReturnedIsReturnedAgain) {
    Queue queue;
    Hasty cpus([&] {
        cpus.let(CpuSet{3});
        cpus.let(CpuSet());
    });
    WorkerPool pool(kMachine, cpus, queue, quick(2ms));
    cpus.let(CpuSet{3});
    cpus.let(CpuSet());
    EXPECT_TRUE(becomes_true([&] { return cpus.returns == 2; }, 20s));
}

TEST(WorkerPoolReturns, WhatComesBackWhileItIsReturnedIsUsedAfterwards) {
    Queue queue;
    std::optional<WorkerPool> pool;
    CpuSet early{0};
    Hasty cpus([&] {
        cpus.let(CpuSet{3});
        early = pool->occupied();
    });
    pool.emplace(kMachine, cpus, queue, quick(2ms));
    cpus.let(CpuSet{3});
    queue.push([&](Worker&) { cpus.let(CpuSet()); });
    queue.push([](Worker&) {});
    pool->work_arrived();
    EXPECT_TRUE(becomes_true([&] { return queue.done == 2; }, 20s));
    pool.reset();
    EXPECT_EQ(early, CpuSet()) << "the provider had not been told yet that the pool had left";
}

}  // namespace
}  // namespace heddle
