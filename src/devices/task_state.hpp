// TaskState: a task from its construction to its end, and the graph of who follows whom.
//
// The kernels are its builder's until it is submitted, and then its device's worker's. What ties tasks to
// each other is guarded by graph_mutex(), one for all runtimes, since they may share buffers.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "devices/cost_model.hpp"
#include "devices/driver.hpp"
#include "heddle/device.hpp"

namespace heddle::devices {

struct ProgramState {
    uint64_t runtime = 0;  ///< its RuntimeState::number: its address may be another one's later
    /// By device; null where it was not built.
    std::vector<std::shared_ptr<DriverProgram>> built;
    std::vector<std::string> logs;  // by device
    /// By name: the devices that have built the program without it.
    std::map<std::string, std::vector<unsigned>> kernels;
    /// The same for any name.
    [[nodiscard]] std::vector<unsigned> lacking(const std::string& kernel) const;
    /// Of its text.
    Signature hash = 0;

    ProgramSource source;
    /// On devices of engines (engine_choice.hpp): null and why, where it was not built.
    struct Elsewhere {
        std::shared_ptr<DriverProgram> program;
        std::vector<std::string> kernels;
        std::string log;
    };
    std::mutex elsewhere_mutex;
    std::map<void*, Elsewhere> elsewhere;  // by EngineDevice::device
};

/// Adds a value to a hash, whose order counts.
inline void mix(Signature& hash, uint64_t value) {
    constexpr Signature kPrime = 0x100000001b3;
    hash = (hash ^ value) * kPrime + (hash >> 29);
}

/// Guards the uses of buffers, and of tasks what says so.
[[nodiscard]] std::mutex& graph_mutex();

/// With graph_mutex: whether a wait() or finish() has thrown it.
struct Failure {
    std::exception_ptr why;
    bool told = false;
};

class TaskState;
using Tasks = std::vector<std::shared_ptr<TaskState>>;

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
    /// With graph_mutex: it failed, and nobody was told of that failure. What it was to write is not there
    /// for those that are submitted now either.
    [[nodiscard]] bool failure_is_untold() const {
        return failure != nullptr && !failure->told && !only_wait_tells;
    }
    /// It has failed or was cancelled: no scheduler needs it any more.
    [[nodiscard]] bool withdrawn() const { return status > TaskStatus::kDone; }

    Kernel& add_kernel(const std::string& name);
    [[nodiscard]] Kernel& kernel(const std::string& name);
    [[nodiscard]] bool runs_on(const DeviceState& device) const;
    /// It would, if the device had not died.
    [[nodiscard]] bool suits(const DeviceState& device) const;
    /// Why it does not run there.
    [[nodiscard]] std::string refusal(const DeviceState& device) const;
    [[nodiscard]] double estimate_us(const DeviceState& device) const;
    using Writes = std::vector<std::pair<const Buffer*, ByteRange>>;
    /// But for what is `coming`.
    [[nodiscard]] double transfer_us(const DeviceState& device, const Writes& coming = {}) const;
    /// With graph_mutex: what tasks before it have still to write.
    [[nodiscard]] Writes coming() const;
    [[nodiscard]] size_t bytes_read_of(const TaskState& writer) const;

    /// For people: its name, or those of its kernels; empty for one without a name that has ended. Any
    /// thread.
    [[nodiscard]] std::string shown_name() const;
    /// With its name where a driver told of it, who knows what failed on which device, but not in which task.
    [[nodiscard]] std::exception_ptr named(const std::exception_ptr& why) const;
    /// As its kernels are when it is submitted, to one of these.
    void sign(std::span<const std::unique_ptr<DeviceState>> devices);
    [[nodiscard]] Signature signature() const noexcept { return signature_; }

    /// With graph_mutex: it follows those whose data it needs, and later ones will follow it. Where one
    /// before it has failed that was to write what it reads, and nobody was told, it has that failure now,
    /// and is still to be settled so.
    void enter_graph();
    /// With graph_mutex: it ends so, and where it was not done so do those that need its results. They join
    /// the list and are held: each stays in the graph until it was let go once more.
    void settle(TaskStatus how, const std::exception_ptr& why, Tasks& settled);
    /// With graph_mutex: one thing less that it waits for. After the last one it may run, or, where it has
    /// ended, leaves the graph; so do those that waited for it alone. They join the lists.
    void let_go(Tasks& ready, Tasks& left);
    [[nodiscard]] bool has_left_graph() const { return left_; }
    // With graph_mutex, of going ahead (task_graph.cpp).
    /// It is in flight: those that follow it, and may go ahead now, join the list.
    void enter_flight(std::deque<std::shared_ptr<TaskState>>& followers);
    /// It is no more, before it has ended.
    void leave_flight();
    [[nodiscard]] bool may_go_ahead() const;

    /// What its kernels read, as far as it is set, is on its way to the device. Throws as launch() does.
    void prefetch(DeviceState& device);
    /// Runs the kernels; the device then has them on its way. What is `coming` is not fetched: tasks in
    /// flight there write it before. Throws what callbacks, drivers and buffers do.
    void launch(DeviceState& device, Writes coming);
    /// Copies or kernels of it are on their way, or were.
    [[nodiscard]] bool has_begun() const { return has_begun_; }
    /// What the kernels that were launched wrote is valid on the device alone.
    void publish(DeviceState& device);
    /// None of its kernels has changed what it needs to run once more.
    [[nodiscard]] bool may_run_again(const DeviceState& device) const;
    /// Forgets what it needed to run: buffers are its no more, and no copy that it began is under way.
    void forget();

    const std::shared_ptr<Program> program;
    const Score score;
    const std::string name;
    std::list<Kernel> kernels;  // their addresses stay
    DeviceTask::Callback configure, finish;
    bool configure_adds_data = true;  // or nothing that the graph does not know
    /// With graph_mutex, when it is submitted: nothing else is on its device from before its configure
    /// callback until its finish callback has returned. Nobody was told of what they use.
    bool runs_alone = false;
    /// With graph_mutex: the only device of its runtime that it suits, as of when it was submitted, or -1.
    int sole_device = -1;
    bool is_ahead = false;  // with graph_mutex: its device has it, and it waits for others in flight there
    /// Once, however it has ended, by who ends it, with graph_mutex.
    std::function<void()> told;
    int only_device = -1;
    /// It failed with its device, and had changed what it reads.
    bool changed_in_place = false;
    bool only_wait_tells = false;  // of its failure, and finish() does not
    /// False: what it took says nothing of its kernels. Written before the device has ended them.
    bool tells_cost = true;
    std::atomic<int> priority{0};  // its builder writes, schedulers read

    // With graph_mutex.
    RuntimeState* runtime = nullptr;
    std::shared_ptr<DeviceTask> handle;  // from submission until it has ended
    std::list<std::shared_ptr<TaskState>>::iterator
        live;  // in its runtime's list, as long as there is a handle
    std::atomic<TaskStatus> status{TaskStatus::kBuilt};  // anybody reads
    std::exception_ptr error;                            // as it tells of it
    std::shared_ptr<Failure> failure;                    // of all that fail for one
    unsigned waited_for = 0;                             // by so many threads, for it alone
    std::vector<std::weak_ptr<TaskState>> predecessors;
    /// So many tasks, and threads that are not ready to see it run or leave.
    size_t waits_for = 0;
    /// The scheduler was asked twice for whom it is.
    std::atomic<bool> reconsidered{false};
    // The worker writes, anybody reads.
    std::atomic<int> ran_on{-1};
    std::atomic<int> taken_by{-1};  ///< the device that the scheduler gave it to
    TaskTimes times;

  private:
    /// Why an image that it uses cannot be there, or "".
    [[nodiscard]] std::string image_refusal(const DeviceState& device) const;
    void use(const Access& access);  // with graph_mutex
    void follow(const std::shared_ptr<TaskState>& predecessor, bool needs_result);
    [[nodiscard]] bool lets_ahead(const TaskState& successor) const;
    void launch_kernel(DeviceState& device, DriverProgram& program, const Kernel& kernel, Writes& written);

    struct Successor {
        std::shared_ptr<TaskState> task;
        bool needs_result;
    };
    std::vector<Successor> successors_;  // with graph_mutex
    bool left_ = false;                  // with graph_mutex
    bool lets_ahead_ = false;            // with graph_mutex: who follows it may be in flight with it
    size_t waits_in_flight_ = 0;         // with graph_mutex: of waits_for, those in flight on its sole device
    /// Of the devices whose program lacks a kernel of it, or that cannot have an image of it.
    std::vector<unsigned> lacking_on_;
    /// Between schedulers that look at what it accesses, who prefetches, and who forgets it.
    mutable std::mutex kernels_mutex_;
    bool prefetched_ = false;  // with kernels_mutex_
    /// What its kernels write, as far as it was set when it was submitted: followers ask while it runs.
    Writes writes_;
    size_t launched_ = 0;     // the worker's
    bool has_begun_ = false;  // the worker's
    Signature signature_ = 0;
};

}  // namespace heddle::devices
