// QueueScheduler: what the schedulers here have in common: a lock, the pushed tasks, and waiting for none.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>

#include "heddle/device.hpp"

namespace heddle::devices {

class QueueScheduler : public Scheduler {
  public:
    void push(TaskPointer task) override {
        const std::lock_guard guard(mutex_);
        ++pushed_;
        enqueue(std::move(task));
    }

    [[nodiscard]] TaskPointer pop(const Device& device) override {
        const std::lock_guard guard(mutex_);
        TaskPointer task = pushed_ == 0 ? nullptr : choose(device);
        if (task != nullptr) count_out();
        return task;
    }

    void wait_until_idle() override {
        std::unique_lock lock(mutex_);
        idle_.wait(lock, [this] { return pushed_ == 0; });
    }

    void dropped(const TaskPointer& task) override {
        const std::lock_guard guard(mutex_);
        if (remove(task)) count_out();
    }

  protected:
    // All of them with the lock.
    virtual void enqueue(TaskPointer task) = 0;
    [[nodiscard]] virtual TaskPointer choose(const Device& device) = 0;
    /// True where it was queued.
    virtual bool remove(const TaskPointer& task) = 0;

    std::mutex mutex_;

  private:
    void count_out() {
        if (--pushed_ == 0) idle_.notify_all();
    }

    std::condition_variable idle_;
    size_t pushed_ = 0;
};

}  // namespace heddle::devices
