// TaskState: a task from its construction to its end, and the graph of who follows whom.
//
// The kernels are its builder's until it is submitted, and then its device's worker's. What ties tasks to
// each other is guarded by graph_mutex(), one for all runtimes, since they may share buffers.
#pragma once

#include <atomic>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "devices/cost_model.hpp"
#include "devices/driver.hpp"
#include "heddle/device.hpp"

namespace heddle::devices {

struct ProgramState {
    RuntimeState* runtime = nullptr;
    /// By device; null where it was not built.
    std::vector<std::shared_ptr<DriverProgram>> built;
    std::vector<std::vector<std::string>> kernels_on;  // by device
    std::vector<std::string> logs;
    std::vector<std::string> kernels;
    /// Of its text.
    Signature hash = 0;
};

/// Adds a value to a hash, whose order counts.
inline void mix(Signature& hash, uint64_t value) {
    constexpr Signature kPrime = 0x100000001b3;
    hash = (hash ^ value) * kPrime + (hash >> 29);
}

/// Guards the uses of buffers, and of tasks what says so.
[[nodiscard]] std::mutex& graph_mutex();

class TaskState : public std::enable_shared_from_this<TaskState> {
  public:
    TaskState(std::shared_ptr<Program> program, Score score, std::string name);

    /// The accesses of all kernels, so far as they are set.
    template <class Visit>
    void visit_accesses(const Visit& visit) const {
        for (const Kernel& kernel : kernels)
            for (const KernelArgument& argument : kernel.arguments_)
                if (const Access* const access = std::get_if<Access>(&argument)) visit(*access);
    }

    [[nodiscard]] static TaskState& of(const DeviceTask& task) { return *task.state_; }
    [[nodiscard]] static DeviceState& of(const Device& device) { return *device.state_; }
    [[nodiscard]] static ProgramState& of(const Program& program) { return *program.state_; }
    [[nodiscard]] static bool ended(TaskStatus status) { return status >= TaskStatus::kDone; }

    Kernel& add_kernel(const std::string& name);
    [[nodiscard]] Kernel& kernel(const std::string& name);
    [[nodiscard]] bool runs_on(const DeviceState& device) const;
    /// Why it does not.
    [[nodiscard]] std::string refusal(const DeviceState& device) const;
    [[nodiscard]] double estimate_us(const DeviceState& device) const;
    [[nodiscard]] double transfer_us(const DeviceState& device) const;
    [[nodiscard]] size_t bytes_read_of(const TaskState& writer) const;

    /// For people: its name, or those of its kernels.
    [[nodiscard]] std::string shown_name() const;
    /// As its kernels are when it is submitted.
    void sign();
    [[nodiscard]] Signature signature() const noexcept { return signature_; }

    /// With graph_mutex: it follows those whose data it needs, and later ones will follow it.
    void enter_graph();
    /// With graph_mutex: it has ended so. Those that may run now, and those that have failed with it, join
    /// the lists.
    void leave_graph(TaskStatus how, std::exception_ptr why, std::vector<std::shared_ptr<TaskState>>& ready,
                     std::vector<std::shared_ptr<TaskState>>& failed);

    /// Runs the kernels; the device then has them on its way. Throws what callbacks, drivers and buffers do.
    void launch(DeviceState& device);
    /// Some of its kernels are on their way, or were.
    [[nodiscard]] bool has_launched() const { return launched_ > 0; }
    /// What the kernels that were launched wrote is valid on the device alone.
    void publish(DeviceState& device);
    /// None of its kernels has changed what it needs to run once more.
    [[nodiscard]] bool may_run_again(const DeviceState& device) const;
    /// Forgets what it needed to run: buffers are its no more.
    void forget();

    const std::shared_ptr<Program> program;
    const Score score;
    const std::string name;
    std::list<Kernel> kernels;  // their addresses stay
    DeviceTask::Callback configure, finish;
    /// Once, however it has ended, by who ends it, with graph_mutex.
    std::function<void()> told;
    int only_device = -1;
    std::atomic<int> priority{0};  // its builder writes, schedulers read

    // With graph_mutex.
    RuntimeState* runtime = nullptr;
    std::shared_ptr<DeviceTask> handle;  // from submission until it has ended
    std::list<std::shared_ptr<TaskState>>::iterator
        live;  // in its runtime's list, as long as there is a handle
    TaskStatus status = TaskStatus::kBuilt;
    std::exception_ptr error;
    unsigned waited_for = 0;  // by so many threads, for it alone
    std::vector<std::weak_ptr<TaskState>> predecessors;
    size_t waits_for = 0;
    std::atomic<int> ran_on{-1};  // the worker writes, anybody reads
    TaskTimes times;

  private:
    void follow(const std::shared_ptr<TaskState>& predecessor, bool needs_result);
    void launch_kernel(DeviceState& device, DriverProgram& program, const Kernel& kernel,
                       std::vector<Access>& written);

    struct Successor {
        std::shared_ptr<TaskState> task;
        bool needs_result;
    };
    std::vector<Successor> successors_;  // with graph_mutex
    size_t launched_ = 0;                // the worker's
    Signature signature_ = 0;
};

}  // namespace heddle::devices
