// parallelme::Task (seed 004) on a task of heddle. What its kernels use is only known to the callback that
// configures them, so nothing orders tasks but their caller.
#pragma once

#include <algorithm>
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
        if (program_ == nullptr) throw std::invalid_argument("a task needs a program");
        task_ = std::make_shared<DeviceTask>(
            program_->heddle_program(),
            heddle::devices::Score{score.cpuScore, score.gpuScore, score.acceleratorScore});
        const auto ending = std::make_shared<Ending>();
        ending_ = ending;
        task_->on_configure([all = callbacks_, ending](heddle::devices::Device& device, DeviceTask& task) {
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

    /// Throws InvalidKernelError, also for a name that the task has: a KernelHash has one kernel of each.
    Task* addKernel(const std::string& name) {
        if (std::find(callbacks_->names.begin(), callbacks_->names.end(), name) != callbacks_->names.end())
            throw InvalidKernelError(
                "the task has kernel \"" + name +
                "\" already, and its functions reach one of each name: use another task");
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
    /// Before it is submitted: called when it has ended, well or not, perhaps by a thread of the runtime.
    void on_end(std::function<void()> told) { ending_.lock()->told = std::move(told); }

  private:
    /// heddle lets go of a task's callbacks when it has ended.
    struct Ending {
        Ending() = default;
        Ending(const Ending&) = delete;
        Ending& operator=(const Ending&) = delete;
        ~Ending() {
            if (told) told();
        }
        std::function<void()> told;
    };
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
    std::weak_ptr<Ending> ending_;  // the callback's
};

}  // namespace parallelme

namespace parallelme {

/// heddle's interface of schedulers before one of the seed's: what was submitted goes to push as it came, and
/// comes back from pop. A task is kept from pop until its end, since it may be pushed again.
class Runtime::Adapter : public heddle::devices::Scheduler {
  public:
    explicit Adapter(std::shared_ptr<parallelme::Scheduler> scheduler) : scheduler_(std::move(scheduler)) {}

    void keep(std::unique_ptr<Task> task) {
        const std::lock_guard guard(mutex_);
        const auto* const key = task->heddle_task().get();
        tasks_[key] = std::move(task);
    }

    void push(heddle::devices::TaskPointer inner) override {
        if (std::unique_ptr<Task> task = take(inner.get())) scheduler_->push(std::move(task));
    }
    heddle::devices::TaskPointer pop(const heddle::devices::Device& device) override {
        Device seen(device);
        std::unique_ptr<Task> task = scheduler_->pop(seen);
        if (task == nullptr) return nullptr;
        heddle::devices::TaskPointer inner = task->heddle_task();
        keep(std::move(task));
        // Nobody may tell of its end any more.
        if (inner->status() >= heddle::devices::TaskStatus::kDone) (void)take(inner.get());
        return inner;
    }
    void wait_until_idle() override { scheduler_->waitUntilIdle(); }

    /// Null: it has none. Who lets a task go may let the runtime go with it.
    std::unique_ptr<Task> take(const heddle::devices::DeviceTask* inner) {
        const std::lock_guard guard(mutex_);
        const auto found = tasks_.extract(inner);
        return found.empty() ? nullptr : std::move(found.mapped());
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
    if (task == nullptr) throw RuntimeExecutionError("no task was submitted");
    const heddle::devices::TaskPointer inner = task->heddle_task();
    if (adapter_ != nullptr) {
        task->on_end([at = std::weak_ptr<Adapter>(adapter_), key = inner.get()] {
            if (const std::shared_ptr<Adapter> adapter = at.lock()) (void)adapter->take(key);
        });
        adapter_->keep(std::move(task));
    }
    try {
        runtime_->submit(inner);
    } catch (const heddle::Error& error) {
        if (adapter_ != nullptr) (void)adapter_->take(inner.get());
        throw RuntimeExecutionError(error.what());
    }
}

inline void Runtime::finish() {
    try {
        runtime_->finish();
    } catch (const std::exception& error) {
        throw RuntimeExecutionError(error.what());
    }
}

}  // namespace parallelme
