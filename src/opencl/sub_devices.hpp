// SubDevice: some CPUs of a CPU device, for the driver a range of its threads, for heddle a component of the
// ledger (docs/LEDGER.md).
//
// It owns its CPUs, so far as nobody else does. As long as the driver has commands of its queues it uses them
// and has them back from who borrowed them; when there are none, or a kernel of another runtime runs there,
// it lends them. The driver's threads are bound to the CPUs that it may use. Drivers' sub-devices are kept
// for good, since PoCL looks at one after it was released; the program's references are counted here.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "heddle/cores.hpp"
#include "heddle/cpu_set.hpp"
#include "opencl/next.hpp"
#include "opencl/thread_places.hpp"

namespace heddle::opencl {

class ThreadPool;

class SubDevice {
  public:
    SubDevice(cl_device_id driver, std::shared_ptr<ThreadPool> pool, const CpuSet& cpus, ThreadRange range);

    /// Null for a device that the layer did not make.
    [[nodiscard]] static std::shared_ptr<SubDevice> of(cl_device_id device);

    [[nodiscard]] const CpuSet& cpus() const noexcept { return cpus_; }
    [[nodiscard]] const ThreadRange& range() const noexcept { return range_; }
    [[nodiscard]] const std::shared_ptr<ThreadPool>& pool() const noexcept { return pool_; }
    [[nodiscard]] cl_device_id id() const noexcept { return id_; }

    /// As long as there is a copy of this: for a command that is kept from the driver. Null as of().
    [[nodiscard]] static std::shared_ptr<void> kept_for_command(cl_device_id device);
    // A command of the driver's, and a kernel of another runtime.
    void begins();
    void ended();
    void native_begins();
    void native_ended();

    // The program's references, and contexts and queues that were made for it; the last of all gives its CPUs
    // and threads free, as soon as no command runs. One that divides a device has its first reference by
    // these, and then the ledger is told. False where nothing keeps it any more.
    [[nodiscard]] bool retain_again(cl_device_id parent, std::vector<cl_device_partition_property> how);
    void retain_first(cl_device_id parent, std::vector<cl_device_partition_property> how);
    void follow_references();
    void retain();
    void release();
    void attach();
    void detach();
    /// Nothing but commands keeps it, and its threads are not free yet.
    [[nodiscard]] bool is_going() const;

    // As the program made it last.
    [[nodiscard]] cl_device_id parent() const;
    [[nodiscard]] std::vector<cl_device_partition_property> how() const;
    [[nodiscard]] cl_uint references() const;

  private:
    using Change = void (SubDevice::*)();
    void join_ledger();
    void leave_ledger();
    void give_threads_back();
    void take_cpus();
    void lend_cpus();
    /// With the lock: what the ledger is to be told next, or null.
    [[nodiscard]] Change next_change();
    /// With the lock.
    [[nodiscard]] bool is_kept() const noexcept {
        return references_ > 0 || attached_ > 0 || held_commands_ > 0 || commands_ > 0 || natives_ > 0;
    }
    void free_if_unused(std::unique_lock<std::mutex>& lock);
    /// Tells it all, without the lock meanwhile.
    void follow(std::unique_lock<std::mutex>& lock);

    const cl_device_id id_;
    const std::shared_ptr<ThreadPool> pool_;
    const CpuSet cpus_;
    const ThreadRange range_;
    mutable std::mutex mutex_;  // for what follows
    cl_device_id parent_ = nullptr;
    std::vector<cl_device_partition_property> how_;
    cl_uint references_ = 0;
    cl_uint attached_ = 0;  // contexts and queues
    int held_commands_ = 0;
    int commands_ = 0;
    int natives_ = 0;
    bool has_range_ = false;  // of the pool's threads
    // What the ledger was told, or is being told.
    bool was_wanted_ = false;
    bool uses_ = false;
    bool changing_ = false;
    std::thread::id changer_;  // meanwhile
    std::condition_variable changed_;
    std::optional<Component> component_;  // of who changes, and of its own callbacks
};

/// The CPUs on which a CPU device of the driver's, or a sub-device, computes.
[[nodiscard]] CpuSet cpus_of_device(cl_device_id device);
/// Its sub-devices are made here: it is a CPU device of a driver whose threads heddle can bind.
[[nodiscard]] bool partitions(cl_device_id device);
/// As clCreateSubDevices.
[[nodiscard]] cl_int create_sub_devices(cl_device_id device, const cl_device_partition_property* properties,
                                        cl_uint room, cl_device_id* devices, cl_uint* count);

}  // namespace heddle::opencl
