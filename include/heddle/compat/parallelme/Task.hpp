// parallelme::Task (seed 004) on a task of heddle. What its kernels use is only known to the callback that
// configures them, so nothing orders tasks but their caller.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "../parallelme/Device.hpp"
#include "../parallelme/Kernel.hpp"
#include "../parallelme/Program.hpp"

namespace parallelme {

using KernelHash = std::unordered_map<std::string, Kernel*>;

class InvalidKernelError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Task {
  public:
    /// Lower is faster.
    struct Score {
        float cpuScore;
        float gpuScore;
        float acceleratorScore;
        Score(float cpu = 1.0f, float gpu = 1.0f, float acc = 1.0f)
            : cpuScore(cpu), gpuScore(gpu), acceleratorScore(acc) {}
    };
    using KernelFunction = std::function<void(DevicePtr&, KernelHash&)>;

    explicit Task(std::shared_ptr<Program> program, Score score = Score())
        : score_(score), program_(std::move(program)), callbacks_(std::make_shared<Callbacks>()) {
        using heddle::devices::DeviceTask;
        task_ = std::make_shared<DeviceTask>(
            program_->heddle_program(),
            heddle::devices::Score{score.cpuScore, score.gpuScore, score.acceleratorScore});
        task_->on_configure([all = callbacks_](heddle::devices::Device& device, DeviceTask& task) {
            all->device = std::make_shared<Device>(device);
            for (const std::string& name : all->names) {
                if (all->hash.contains(name)) continue;
                all->kernels.emplace_back(task.kernel(name));
                all->hash[name] = &all->kernels.back();
            }
            if (all->configure) all->configure(all->device, all->hash);
        });
        task_->on_finish([all = callbacks_](heddle::devices::Device&, DeviceTask&) {
            if (all->finish) all->finish(all->device, all->hash);
        });
    }
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

    /// Throws InvalidKernelError.
    Task* addKernel(const std::string& name) {
        try {
            task_->add_kernel(name);
        } catch (const heddle::Error& error) {
            throw InvalidKernelError(error.what());
        }
        callbacks_->names.push_back(name);
        return this;
    }
    void setConfigFunction(KernelFunction function) { callbacks_->configure = std::move(function); }
    void setFinishFunction(KernelFunction function) { callbacks_->finish = std::move(function); }
    const Score& score() const { return score_; }
    const Program& program() const { return *program_; }

    const heddle::devices::TaskPointer& heddle_task() const { return task_; }

  private:
    struct Callbacks {
        KernelFunction configure, finish;
        std::vector<std::string> names;
        DevicePtr device;
        std::deque<Kernel> kernels;
        KernelHash hash;
    };
    Score score_;
    std::shared_ptr<Program> program_;
    std::shared_ptr<Callbacks> callbacks_;
    heddle::devices::TaskPointer task_;
};

}  // namespace parallelme

namespace parallelme {

/// heddle's interface of schedulers before one of the seed's: what was submitted goes to push as it came, and
/// comes back from pop.
class Runtime::Adapter : public heddle::devices::Scheduler {
  public:
    explicit Adapter(std::shared_ptr<parallelme::Scheduler> scheduler) : scheduler_(std::move(scheduler)) {}

    void keep(std::unique_ptr<Task> task) {
        const std::lock_guard guard(mutex_);
        const auto* const key = task->heddle_task().get();
        tasks_[key] = std::move(task);
    }

    void push(heddle::devices::TaskPointer inner) override {
        std::unique_ptr<Task> task;
        {
            const std::lock_guard guard(mutex_);
            task = std::move(tasks_[inner.get()]);
        }
        scheduler_->push(std::move(task));
    }
    heddle::devices::TaskPointer pop(const heddle::devices::Device& device) override {
        Device seen(device);
        std::unique_ptr<Task> task = scheduler_->pop(seen);
        if (task == nullptr) return nullptr;
        heddle::devices::TaskPointer inner = task->heddle_task();
        keep(std::move(task));  // it may be pushed again
        return inner;
    }
    void wait_until_idle() override { scheduler_->waitUntilIdle(); }

    void forget(const heddle::devices::TaskPointer& inner) {
        const std::lock_guard guard(mutex_);
        tasks_.erase(inner.get());
    }
    /// They own their program, and so the runtime. Not by a thread of the runtime, which could not end it.
    void forget_ended() {
        const std::lock_guard guard(mutex_);
        std::erase_if(tasks_, [](const auto& one) {
            return one.second == nullptr || one.first->status() >= heddle::devices::TaskStatus::kDone;
        });
    }

  private:
    const std::shared_ptr<parallelme::Scheduler> scheduler_;
    std::mutex mutex_;
    std::map<const heddle::devices::DeviceTask*, std::unique_ptr<Task>> tasks_;
};

inline Runtime::Runtime(JavaVM*, std::shared_ptr<Scheduler> scheduler) {
    heddle::devices::DeviceOptions options;
    if (scheduler != nullptr) {
        options.scheduler = scheduler->heddle_scheduler();
        if (options.scheduler == nullptr) options.scheduler = adapter_ = std::make_shared<Adapter>(scheduler);
    }
    try {
        runtime_ = std::make_unique<heddle::devices::DeviceRuntime>(options);
    } catch (const heddle::Error& error) {
        throw RuntimeConstructionError(error.what());
    }
    for (const heddle::devices::Device& device : runtime_->devices())
        devices_.push_back(std::make_shared<Device>(device));
}

inline void Runtime::submitTask(std::unique_ptr<Task> task) {
    const heddle::devices::TaskPointer inner = task->heddle_task();
    if (adapter_ != nullptr) {
        adapter_->forget_ended();
        adapter_->keep(std::move(task));
    }
    try {
        runtime_->submit(inner);
    } catch (const heddle::Error& error) {
        if (adapter_ != nullptr) adapter_->forget(inner);
        throw RuntimeExecutionError(error.what());
    }
}

inline void Runtime::finish() {
    const auto forget_ended = [this] {
        if (adapter_ != nullptr) adapter_->forget_ended();
    };
    try {
        runtime_->finish();
    } catch (const std::exception& error) {
        forget_ended();
        throw RuntimeExecutionError(error.what());
    }
    forget_ended();
}

}  // namespace parallelme
