// A queue of functions as the work of a WorkerPool, and options for pools of tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

#include "cores/worker_pool.hpp"

namespace heddle::test {

/// One queue of functions for all workers.
class Queue : public WorkSource {
  public:
    using Item = std::function<void(Worker&)>;

    void push(Item item) {
        const std::lock_guard guard(mutex_);
        items_.push_back(std::move(item));
    }
    bool run_one(Worker& worker) override {
        Item item;
        {
            const std::lock_guard guard(mutex_);
            if (items_.empty()) return false;
            item = std::move(items_.front());
            items_.pop_front();
        }
        worker.found_work();
        item(worker);
        ++done;
        return true;
    }
    bool may_have_work() noexcept override {
        const std::lock_guard guard(mutex_);
        return !items_.empty();
    }
    void worker_starts(Worker&) override { ++starts; }
    void worker_ends(Worker&) override { ++ends; }

    std::atomic<int> done = 0, starts = 0, ends = 0;

  private:
    std::mutex mutex_;
    std::deque<Item> items_;
};

/// A failure of the pool is one of the test.
inline WorkerPoolOptions quick(Nanoseconds idle_delay) {
    WorkerPoolOptions options;
    options.limits.idle_delay = idle_delay;
    options.on_failure = [](const std::exception_ptr& failure) {
        try {
            std::rethrow_exception(failure);
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    };
    return options;
}

}  // namespace heddle::test
