// What the schedulers that heddle has itself are in the seed's words.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "../parallelme/Scheduler.hpp"
#include "../parallelme/Task.hpp"

namespace parallelme {

class OwnScheduler : public Scheduler {
  public:
    explicit OwnScheduler(const std::string& name) : own_(heddle::devices::make_scheduler(name)) {}

    void push(std::unique_ptr<Task> task) override {
        const heddle::devices::TaskPointer inner = task->heddle_task();
        {
            const std::lock_guard guard(mutex_);
            tasks_[inner.get()] = std::move(task);
        }
        own_->push(inner);
    }
    std::unique_ptr<Task> pop(Device& device) override {
        const heddle::devices::TaskPointer inner = own_->pop(device.heddle_device());
        if (inner == nullptr) return nullptr;
        const std::lock_guard guard(mutex_);
        return std::move(tasks_.extract(inner.get()).mapped());
    }
    void waitUntilIdle() override { own_->wait_until_idle(); }
    std::shared_ptr<heddle::devices::Scheduler> heddle_scheduler() override { return own_; }

  private:
    const std::shared_ptr<heddle::devices::Scheduler> own_;
    std::mutex mutex_;
    std::map<const heddle::devices::DeviceTask*, std::unique_ptr<Task>> tasks_;
};

}  // namespace parallelme
