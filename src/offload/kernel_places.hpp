// KernelPlaces: where the kernels of one Offload run: as tasks, or on threads of their own.
//
// Belongs to the OffloadState, which serialises nothing: any thread may call, but for construction and
// destruction.
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/task.hpp"
#include "offload/kernel.hpp"
#include "tasks/crew.hpp"
#include "tasks/polling.hpp"
#include "tasks/region_thread.hpp"

namespace heddle {

class KernelPlaces {
  public:
    /// Is called when all kernels have ended.
    virtual ~KernelPlaces() = default;
    /// On `cpus`, or with an empty set on all. Throws Error, std::bad_alloc; it does not run then.
    virtual void spawn(std::shared_ptr<detail::KernelState> kernel, const CpuSet& cpus) = 0;
    /// Other CPUs from now on.
    virtual void set_cpus(const CpuSet& cpus) = 0;
    /// As register_polling_service() and unregister_polling_service().
    virtual void add_service(const std::string& name, PollingService service, void* data) = 0;
    virtual void remove_service(PollingService service, void* data) = 0;

  protected:
    /// What a kernel may use that was spawned on `wanted`.
    [[nodiscard]] static CpuSet part(const CpuSet& wanted, const CpuSet& all) {
        CpuSet both = wanted & all;
        return both.empty() ? all : both;
    }
};

/// Kernels that are tasks: a runtime for each set of CPUs, kept for the next kernel on it.
class TaskKernels final : public KernelPlaces {
  public:
    TaskKernels(const EngineFactory& engine, CpuSet cpus);
    void spawn(std::shared_ptr<detail::KernelState> kernel, const CpuSet& cpus) override;
    void set_cpus(const CpuSet& cpus) override;
    void add_service(const std::string& name, PollingService service, void* data) override;
    void remove_service(PollingService service, void* data) override;

  private:
    /// Kernels that are waited for together: a sequence with few tasks never has its inserter help.
    struct Batch {
        explicit Batch(Runtime& runtime) : sequence(runtime) {}
        Sequence sequence;
        std::atomic<int> left{0};
    };
    struct Place {
        Place(CpuSet set, std::unique_ptr<detail::RuntimeState> state);
        [[nodiscard]] Batch& batch();
        [[nodiscard]] bool idle() const;
        CpuSet wanted;  ///< empty: all
        Runtime runtime;
        std::list<Batch> batches;
    };
    [[nodiscard]] Place& place_for(const CpuSet& wanted, std::list<Place>& old);

    const EngineFactory& engine_;
    // For all below. Callbacks of the program's components may come to run under it, and call here.
    std::recursive_mutex mutex_;
    CpuSet cpus_;
    std::list<Place> places_;  // last used first; the one on all CPUs is kept, and polls
};

/// Kernels of a foreign runtime: threads of ours, each of which runs one after the other.
class CrewKernels final : public KernelPlaces, private CrewWatcher {
  public:
    CrewKernels(const EngineFactory& engine, CpuSet cpus);
    ~CrewKernels() override;
    void spawn(std::shared_ptr<detail::KernelState> kernel, const CpuSet& cpus) override;
    void set_cpus(const CpuSet& cpus) override;
    void add_service(const std::string& name, PollingService service, void* data) override;
    void remove_service(PollingService service, void* data) override;

  private:
    struct Job {
        std::shared_ptr<detail::KernelState> kernel;
        CpuSet wanted;  ///< empty: all
    };
    struct Running {
        std::shared_ptr<Crew> crew;
        CpuSet wanted;
    };
    void kernel_blocks(bool blocks) override;
    struct Turn;
    void work();
    void poll(std::unique_lock<std::mutex>& lock);
    void run(Job job);
    void run_turn(Turn& turn) noexcept;
    /// Another thread, where kernels wait for one and there may be. Throws kLimit, std::bad_alloc; then there
    /// is none.
    void start_if_needed();
    /// Some thread comes to the queue in time.
    [[nodiscard]] bool somebody_comes() const;

    const EngineFactory& engine_;
    const CrewOptions options_;
    std::mutex mutex_;  // for all below
    std::condition_variable changed_;
    CpuSet cpus_;
    std::deque<Job> queue_;
    std::list<Running> running_;
    std::list<RegionThread> threads_;
    int idle_ = 0, blocked_ = 0;
    bool polls_ = false;  ///< a thread without a kernel does
    bool stop_ = false;
    PollingServices services_;  // has a lock of its own
};

}  // namespace heddle
