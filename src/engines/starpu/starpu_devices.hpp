// StarPuDevices: tasks of an engine that StarPU places on the CPU or on its OpenCL devices, by what it has
// learned of their costs and of where their data are.
//
// Each is a task of StarPU's with a codelet for both. What it uses are data handles with the memory's bytes,
// so StarPU copies them and knows who has them; what a device wrote is fetched before the work is over. On
// the CPU the codelet goes on with the paused task that submitted the work, on the worker's own seat, so that
// StarPU times the function itself.
//
// One for an engine; any thread.
#pragma once

#include <starpu.h>

#include <atomic>
#include <mutex>
#include <string>

#include "tasks/device_choice.hpp"

namespace heddle {

class StarPu;
class StarPuEngine;

class StarPuDevices final : public DeviceChoice {
  public:
    StarPuDevices(StarPu& starpu, StarPuEngine& engine) : starpu_(starpu), engine_(engine) {}

    [[nodiscard]] std::span<const EngineDevice> devices() const noexcept override;
    [[nodiscard]] std::shared_ptr<KnownMemory> know(void* address, size_t bytes) override;
    [[nodiscard]] bool submit(TwoWayWork& work) noexcept override;
    void done(TwoWayWork& work) noexcept override;

    /// Whose task this is; null: nobody's here.
    [[nodiscard]] static StarPuDevices* of(const starpu_task& job) noexcept;
    /// Of one of ours: who has left it first, as StarPuEngine says.
    [[nodiscard]] static void*& left_by(const starpu_task& job) noexcept;
    /// For a worker of another engine that got one of ours.
    void put_aside(starpu_task& job) noexcept;
    /// One of those, or null.
    [[nodiscard]] starpu_task* next() noexcept;
    /// The calling worker may find one.
    [[nodiscard]] bool any() const noexcept;
    [[nodiscard]] bool any_submitted() const noexcept { return submitted_.load() > 0; }

  private:
    struct Job;
    static starpu_codelet& codelet_for(const std::string& name);
    static void run_on_cpu(void** buffers, void* argument);
    static void run_on_device(void** buffers, void* argument);
    static int may_run(unsigned worker, starpu_task* task, unsigned implementation);
    static uint32_t footprint(starpu_task* task);
    static void ended(void* job) noexcept;
    static void fetched(void* use) noexcept;
    void finish(Job& job) noexcept;

    StarPu& starpu_;
    StarPuEngine& engine_;
    std::atomic<int> submitted_{0};  // and not over

    mutable std::mutex mutex_;  // for those below
    starpu_task *first_aside_ = nullptr, *last_aside_ = nullptr;
    std::atomic<bool> any_aside_{false};  // read without it
};

}  // namespace heddle
