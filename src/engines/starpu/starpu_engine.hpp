// StarPuEngine: tasks as tasks of StarPU, ordered by its data handles.
//
// A datum is a void handle, registered when a task first names it: StarPU's sequential consistency orders the
// tasks, and their memory stays where it is. Children of tasks are ordered by heddle's graph and are tasks
// without data. What StarPU says could run lies in StarPuReady until a worker of StarPu takes it; the worker
// has a seat, and so a CPU, while it runs tasks.
//
// A task that waits is paused (TaskFlows): its codelet returns, but StarPU is told to count the task as ended
// later (starpu_task_end_dep_add).
#pragma once

#include <starpu.h>

#include <array>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engines/flows/task_flows.hpp"
#include "engines/graphs/data_uses.hpp"
#include "engines/seats/seats.hpp"
#include "engines/starpu/starpu_accesses.hpp"
#include "engines/starpu/starpu_devices.hpp"
#include "engines/starpu/starpu_process.hpp"
#include "engines/starpu/starpu_ready.hpp"
#include "tasks/event_count.hpp"

namespace heddle {

class StarPuEngine final : public Engine {
  public:
    explicit StarPuEngine(const EngineOptions& options);
    ~StarPuEngine() override;

    void ready(Lane& lane, Task& task) override;
    void insert(Lane& lane, Task& task) override;
    [[nodiscard]] bool own_graph() const override { return true; }
    void forget(const DataState& data) noexcept override;
    void wait_until(Lane& lane, const std::function<bool()>& reached) override;
    void notify() override { news_.notify(); }
    bool help(Lane& lane, uint64_t wanted) noexcept override;
    void services_arrived() override { starpu_.ring(); }
    void suspend(Announcement publish) override;
    [[nodiscard]] DeviceChoice* device_choice() noexcept override {
        return starpu_.devices().empty() ? nullptr : &devices_;
    }

    // For StarPu, which visits it: counts its workers here under its mutex.
    int visitors = 0;
    [[nodiscard]] bool wants_worker() const noexcept {
        return (ready_.any() || flows_.any_woken() || devices_.any()) && has_room();
    }
    [[nodiscard]] bool has_room() const noexcept { return busy_.load() < options_.workers; }
    /// Runs tasks on the calling thread, which is that worker, until there are none or it is another's turn.
    /// Throws std::bad_alloc, or kLimit as EngineHost::lane().
    void serve(StarPu::Worker& worker);
    /// The worker has had nothing to do for a while, or goes to another engine.
    void rest(const StarPu::Worker& worker) noexcept;
    /// No worker comes to run tasks again.
    void rest_all() noexcept;
    /// Calls the polling services. True: one of them was done.
    bool poll() noexcept { return host_.poll(); }
    [[nodiscard]] bool has_services() const noexcept { return !host_.polling_services().empty(); }

    // For StarPU's callbacks.
    void became_ready(starpu_task& job) noexcept;
    [[nodiscard]] starpu_task* next(StarPu::Worker& worker) noexcept;
    void run(starpu_task& job) noexcept;
    [[nodiscard]] StarPuDevices& devices() noexcept { return devices_; }
    /// Goes on with a task that is paused, in the codelet of another one.
    void resume(Waiter& paused) noexcept {
        Lane& lane = host_.lane();
        host_.flush(lane);
        after(lane, flows_.resume(lane, paused));
    }
    /// The function of a codelet that has returned before has ended.
    static void leave_by_task(starpu_task& job) noexcept;
    [[nodiscard]] static StarPuEngine* of(const starpu_task& job) noexcept;

  private:
    [[nodiscard]] starpu_data_handle_t handle_of(const DataState& data);
    void submit(Task& task, const std::vector<StarPuAccess>& accesses);
    void run_next(StarPu::Worker& worker);
    /// Others may run it instead.
    void share_kept(StarPu::Worker& worker) noexcept;
    static void leave(starpu_task& job, void* by) noexcept;
    void go_on(Lane& lane, Task* task, starpu_task* job) noexcept;
    void after(Lane& lane, const TaskFlows::Outcome& outcome) noexcept;
    [[nodiscard]] bool put_off(Task& task) noexcept;

    EngineHost& host_;
    const EngineOptions options_;
    StarPu& starpu_;
    Seats seats_;
    StarPuReady ready_;
    TaskFlows flows_;
    StarPuDevices devices_;
    EventCount news_;  // for threads in wait_until(), which run no tasks
    std::array<Seats::Seat*, StarPu::kMostWorkers> seat_of_{};  // each its worker's
    std::atomic<int> busy_{0};                                  // workers in serve()
    std::atomic<uint64_t> ended_{0};

    std::mutex mutex_;  // for those below, and so that what shares data has one order
    std::unordered_map<const DataState*, starpu_data_handle_t> handles_;
    // Of the task that is being inserted.
    std::vector<DataUse> uses_;
    std::vector<StarPuAccess> accesses_;
};

}  // namespace heddle
