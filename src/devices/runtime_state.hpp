// RuntimeState: the devices of a runtime, their workers, and the tasks that have not ended.
//
// Runtimes may share buffers: a task that ends lets tasks of others go, each to its own scheduler, and a
// failure reaches them. A runtime stays at least until the last of its tasks is counted out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "devices/device_state.hpp"

namespace heddle::devices {

/// A scheduler while a runtime has it: it knows of no other one's devices.
class TakenScheduler {
  public:
    /// Throws kInvalidArgument where another runtime has it.
    explicit TakenScheduler(std::shared_ptr<Scheduler> scheduler);
    ~TakenScheduler();
    TakenScheduler(const TakenScheduler&) = delete;
    TakenScheduler& operator=(const TakenScheduler&) = delete;
    Scheduler* operator->() const noexcept { return scheduler_.get(); }

  private:
    const std::shared_ptr<Scheduler> scheduler_;
};

class RuntimeState {
  public:
    explicit RuntimeState(const DeviceOptions& options);
    ~RuntimeState();

    [[nodiscard]] std::vector<std::unique_ptr<DeviceState>>& devices() noexcept { return devices_; }
    [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }
    [[nodiscard]] std::span<const Device> handles() const noexcept { return handles_; }
    void submit(std::span<const TaskPointer> batch);
    /// Throw kInvalidArgument in a callback of one of its tasks, where they would have to wait.
    void finish();
    void wait(TaskState& task);
    [[nodiscard]] bool cancel(TaskState& task);
    /// The calling thread is a worker, of any runtime.
    [[nodiscard]] static bool in_worker() noexcept;
    /// No other runtime of the process has had it.
    [[nodiscard]] uint64_t number() const noexcept { return number_; }

  private:
    /// Of a wait for this task, or, where it is null, for all.
    void refuse_in_callback(const TaskState* awaited) const;
    void work(std::span<DeviceState* const> own);
    /// A worker asks the scheduler for all of its devices as of one event, so that none sees what those
    /// before it did not, and what happens on a virtual clock repeats.
    struct Pass {
        int events;
        bool outdated = false;  // somebody was refused, since there was another event: once more
    };
    /// True where a task was begun, or tried to.
    bool begin_some(DeviceState& device, Pass& pass);
    void pop_some(DeviceState& device, Pass& pass);
    /// It is what the device begins next, when all in flight has ended.
    static void begin_later(DeviceState& device, std::shared_ptr<TaskState> task, bool is_counted);
    /// While a device with memory of its own is busy it gets its next task, and what that reads is sent.
    void prefetch(DeviceState& device, Pass& pass);
    /// One that goes ahead on the device, or null.
    [[nodiscard]] std::shared_ptr<TaskState> take_follower(DeviceState& device);
    /// Of one that is in flight no more, on a device that is `lost` or not: where it had gone ahead, those
    /// that it follows decide. True where they have.
    bool left_to_predecessors(const std::shared_ptr<TaskState>& task, bool lost);
    [[nodiscard]] TaskPointer pop(const DeviceState& device, Pass& pass);
    bool fails_later(InFlight& flight, DeviceState& device, std::exception_ptr why);
    /// For an idle device the scheduler chooses once more where what another one has next is run. False where
    /// there is none.
    [[nodiscard]] bool reconsider_for(const DeviceState& idle);
    /// To the scheduler, once more.
    void put_back(const std::shared_ptr<TaskState>& next);
    void end_oldest(DeviceState& device);
    void note_whether_busy(DeviceState& device);
    static void note_times(DeviceState& device, std::span<const std::shared_ptr<TaskState>> done,
                           double sent_us);
    /// False where it has failed.
    bool end(DeviceState& device, const std::shared_ptr<TaskState>& task);
    void complete(std::span<const std::shared_ptr<TaskState>> tasks);
    /// It fails or is cancelled, and those that need its results with it. False where it has ended, or begun
    /// and only what has not is meant.
    bool abandon(const std::shared_ptr<TaskState>& task, TaskStatus how, const std::exception_ptr& why,
                 bool only_unbegun = false);
    /// These were settled, failed or cancelled: nobody looks at them any more, and they are let go.
    void withdraw(Tasks settled);
    /// What to do with a task that could not be begun, or not be ended, on a device.
    void repeat_or_fail(DeviceState& device, const std::shared_ptr<TaskState>& task,
                        const std::exception_ptr& why);
    void lose(DeviceState& device, const std::exception_ptr& why);
    [[nodiscard]] bool runs_anywhere(const TaskState& task) const;
    // These four with graph_mutex.
    /// One thing less that each waits for. Those to hand over now; what left the graph; and those to
    /// withdraw.
    [[nodiscard]] std::vector<TaskPointer> let_go(std::span<const std::shared_ptr<TaskState>> held,
                                                  Tasks& left, Tasks& stranded);
    /// Takes those out that the devices which could run them have left behind, and settles them as failed
    /// with those that need their results.
    [[nodiscard]] static Tasks settle_stranded(Tasks& ready);
    /// They have left the graph. What is to be called of them then, without the lock: it wakes tasks, and may
    /// ask components for CPUs, which call what they like.
    [[nodiscard]] static std::vector<std::function<void()>> count_out(
        std::span<const std::shared_ptr<TaskState>> ended);
    /// With graph_mutex: for finish().
    void failed(const std::shared_ptr<Failure>& failure);
    [[nodiscard]] static std::vector<TaskPointer> handles_of(const Tasks& tasks);
    static void tell(const std::vector<std::function<void()>>& told);
    /// To their schedulers, all of one at once for those that pop.
    void hand_over(const std::vector<TaskPointer>& ready);
    /// All of this runtime.
    void schedule(const std::vector<TaskPointer>& ready);
    void check(const TaskPointer& task) const;
    void wake_workers();
    void stop_workers();

    const uint64_t number_;
    const TakenScheduler scheduler_;
    std::unique_ptr<CostModel> costs_;  // null: nothing is learned
    CostModel own_costs_{""};           // of simulated devices, which are others in each runtime
    std::vector<std::string> warnings_;
    std::vector<std::unique_ptr<DeviceState>> devices_;
    std::vector<Device> handles_;
    std::vector<const Device*> pointers_;
    std::vector<std::thread> threads_;

    /// Held while ready tasks are pushed, and for each pop.
    std::mutex handing_over_;
    /// Goes on with each event after which an idle worker should ask the scheduler again.
    std::atomic<int> events_{0};
    std::atomic<bool> stopping_{false};

    // With graph_mutex.
    bool lost_device_ = false;
    size_t unfinished_ = 0;
    size_t coming_ = 0;     // tasks that another runtime has let go, and still brings
    unsigned waiting_ = 0;  // for all
    std::vector<std::shared_ptr<Failure>> failures_;  // of its tasks, since the last finish()
    std::condition_variable ended_;
    std::list<std::shared_ptr<TaskState>> live_;  // those that have not ended
};

/// The task whose callback the calling thread is in, else null.
[[nodiscard]] const TaskState* task_in_callback() noexcept;

}  // namespace heddle::devices
