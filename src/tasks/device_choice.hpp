// DeviceChoice: an engine whose runtime has devices of its own, and its own way to choose between those and
// the CPU.
//
// A task that runs in the engine describes its other implementation as TwoWayWork, submits it and is paused:
// it goes on when the runtime has chosen the CPU, to do the work itself, or when a device has done it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/task.hpp"
#include "tasks/waiter.hpp"

namespace heddle {

/// A device that the engine's runtime has opened, by OpenCL's names: a cl_context, a cl_device_id and a
/// cl_command_queue.
struct EngineDevice {
    void* context = nullptr;
    void* device = nullptr;
    void* queue = nullptr;
};

/// What the engine's runtime knows of some memory. Its copies on devices go with it; whoever wants their
/// bytes has fetched them.
class KnownMemory {
  public:
    virtual ~KnownMemory() = default;
};

class TwoWayWork {
  public:
    struct Use {
        std::shared_ptr<KnownMemory> memory;
        AccessMode how;  ///< kIn, kOut or kInOut
    };

    /// Its costs are learned by this, by `shape`, and by the sizes of what it uses.
    std::string name;
    uint32_t shape = 0;
    std::vector<Use> uses;    ///< each memory once
    uint32_t on_devices = 0;  ///< a bit for each of DeviceChoice::devices() that can run it
    bool on_cpu = true;       ///< so can the CPU

    /// On one of those; `memories` are the cl_mem of the uses. Returns when it is done. In the device's
    /// thread.
    virtual void run_on(unsigned device, std::span<void* const> memories) noexcept = 0;

    // Of the engine and who submits it.
    Waiter* waiter = nullptr;    ///< the task that is paused for it
    bool chose_cpu = false;      ///< it does the work itself, and tells by DeviceChoice::done()
    std::exception_ptr failure;  ///< of the engine's runtime, or of run_on()
    void* token = nullptr;       ///< the engine's

  protected:
    ~TwoWayWork() = default;
};

class DeviceChoice {
  public:
    [[nodiscard]] virtual std::span<const EngineDevice> devices() const noexcept = 0;
    /// Memory of 1 byte or more. Throws std::bad_alloc.
    [[nodiscard]] virtual std::shared_ptr<KnownMemory> know(void* address, size_t bytes) = 0;
    /// Wakes the waiter when the CPU was chosen, or when all is over: what was written is in the memory then.
    /// False: it could not be submitted, as `failure` tells. The waiter is paused in a task of the engine.
    [[nodiscard]] virtual bool submit(TwoWayWork& work) noexcept = 0;
    /// The CPU has done it. Wakes the waiter, which is one again, when the runtime has seen so, too.
    virtual void done(TwoWayWork& work) noexcept = 0;

    /// From now on engines open their runtimes' devices where they start these. Those that were started
    /// before have none.
    static void want_devices() noexcept { wanted_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] static bool wants_devices() noexcept { return wanted_.load(std::memory_order_relaxed); }

  protected:
    ~DeviceChoice() = default;

  private:
    static inline std::atomic<bool> wanted_{false};
};

}  // namespace heddle
