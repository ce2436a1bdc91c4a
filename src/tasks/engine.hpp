// Engine: what runs tasks. One implementation a folder of src/engines.
//
// A runtime has one at a time and calls it from any thread, inside tasks too. Tasks reach it by ready() when
// nothing is before them any more; engines with a graph of their own say so (`own_graph`) and get every task
// by insert() instead, with its accesses. Either way the engine runs each once by EngineHost::run(), on any
// thread of its own or of those in wait_until(), bound to CPUs that its provider lets it use. A plug-in needs
// nothing of libheddle.so but these headers: all that it calls is virtual or inline.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cores/cpu_provider.hpp"
#include "heddle/machine.hpp"
#include "heddle/task.hpp"
#include "tasks/kernel_crew.hpp"
#include "tasks/lane.hpp"
#include "tasks/polling.hpp"
#include "tasks/waiter.hpp"

namespace heddle {

class DeviceChoice;
class Engine;
struct DataState;
struct EngineOptions;
struct TaskFrame;

/// The runtime, as its engine sees it. Outlives the engine. Any thread.
class EngineHost {
  public:
    /// The calling thread's. Throws as lane_of().
    [[nodiscard]] virtual Lane& lane() = 0;
    /// Runs a task that could run, or cancels it, and ends it. Returns one that can run now on this thread,
    /// or null; others are given to Engine::ready().
    /// `lane` is the calling thread's, and afterwards that of the thread where the task has ended.
    virtual Task* run(Lane*& lane, Task& task) noexcept = 0;
    /// The same where the caller has no other place for it: the task is refused every pause.
    virtual Task* run_here(Lane& lane, Task& task) noexcept = 0;
    /// Counts what ended on this lane. To be called before a thread sleeps or looks whether it has waited
    /// enough.
    virtual void flush(Lane& lane) noexcept = 0;
    /// For engines that look at the line (Engine::looks_at_line): of Graph the functions of these names.
    [[nodiscard]] virtual uint32_t in_line() const noexcept = 0;
    [[nodiscard]] virtual uint32_t started_in_line() const noexcept = 0;
    [[nodiscard]] virtual Task* next_in_line(Lane& lane, uint32_t most) noexcept = 0;
    [[nodiscard]] virtual bool put_back(Lane& lane, Task& task) noexcept = 0;
    /// Of all threads that ever had to do with this runtime.
    [[nodiscard]] virtual LaneTable& all_lanes() noexcept = 0;
    /// To be called by a worker that has nothing to do, again and again while there are any.
    [[nodiscard]] virtual PollingServices& polling_services() noexcept = 0;
    /// Calls them, for plug-ins: PollingServices::poll().
    virtual bool poll() noexcept = 0;
    /// Of the CPUs in `free`, which are not none, the nearest to those in `taken`.
    [[nodiscard]] virtual int nearest(const CpuSet& taken, const CpuSet& free) const = 0;
    /// current_frame() and exchange_frame(), for plug-ins.
    [[nodiscard]] virtual TaskFrame* frame() noexcept = 0;
    virtual TaskFrame* swap_frame(TaskFrame* frame) noexcept = 0;
    /// Calls `stay` with the calling thread on these CPUs, for as long as that takes. False: it is a kernel's
    /// thread, which is not to be moved, and has not called it.
    virtual bool stay_on(const CpuSet& cpus, const std::function<void()>& stay) = 0;
    /// The native engine, for one that has a graph and nobody to run the tasks.
    [[nodiscard]] virtual std::unique_ptr<Engine> make_native(const EngineOptions& options) = 0;

  protected:
    ~EngineHost() = default;
};

struct EngineOptions {
    EngineHost& host;
    Machine machine;
    /// Where the CPUs come from. The engine starts it, tells it what it can use, and stops it.
    CpuProvider& provider;
    CpuSet cpus;  ///< those that the provider may ever give, never empty
    int workers;  ///< at most so many tasks at once, 1 or more; a thread in wait_until() is one of them
    bool bind;    ///< threads to their CPUs; not on a machine that is described and not real
    /// Threads in wait_until() and help() run tasks too, and are counted as workers, where the engine can.
    /// False: they never do.
    bool callers_work = true;
    /// A runtime that has devices of its own opens them where the engine starts it.
    bool devices = false;
    /// Of the stacks that tasks run on; 0: as many as are usual. An engine throws kInvalidArgument for what
    /// cannot be.
    size_t stack_bytes = 0;
};

class Engine {
  public:
    /// Is called without tasks left in it, and not in a task. Ends what it started.
    virtual ~Engine() = default;

    /// Takes a task that could run. Throws std::bad_alloc; the caller then runs it itself.
    virtual void ready(Lane& lane, Task& task) = 0;
    /// With a graph of its own: takes a task that may have to wait for earlier ones. Children of tasks come
    /// by ready() all the same: they are ordered among themselves alone, which no engine has a word for. So
    /// do all tasks while somebody looks at the graph (heddle/dag.hpp).
    virtual void insert(Lane& lane, Task& task) { ready(lane, task); }
    [[nodiscard]] virtual bool own_graph() const { return false; }
    /// Does a thread that has nothing to do look at EngineHost::next_in_line()? Then tasks may come that way.
    [[nodiscard]] virtual bool looks_at_line() const { return false; }
    /// There is one more in line.
    virtual void line_grew() noexcept {}
    /// With a graph of its own: these data are going, and no task uses them any more but the calling one, and
    /// those that wait for its end. Any thread, in tasks too.
    virtual void forget(const DataState&) noexcept {}

    /// Returns when `reached`, which is cheap and may be asked often, is true; helps meanwhile. The engine
    /// looks again whenever a task has ended here, and after notify().
    virtual void wait_until(Lane& lane, const std::function<bool()>& reached) = 0;
    /// Something that a thread in wait_until() may wait for has come to pass.
    virtual void notify() = 0;
    /// Runs a task, if there is one at hand, or gives those that run some time, until `wanted` more have
    /// ended or sooner. For a producer that is far ahead, and for a task that has to wait and for which there
    /// is no memory to be paused. False: nothing has ended.
    virtual bool help(Lane& lane, uint64_t wanted) noexcept = 0;

    /// Chooses between the CPU and devices of its own; null: it has none.
    [[nodiscard]] virtual DeviceChoice* device_choice() noexcept { return nullptr; }

    /// None of its threads runs tasks now; where the engine does not know, false.
    [[nodiscard]] virtual bool sleeps() const { return false; }

    /// There is a polling service now, where there was none.
    virtual void services_arrived() {}

    /// Does it try to have tasks with a Placement run there? Otherwise, and always where they must, a thread
    /// that runs one is moved.
    [[nodiscard]] virtual bool goes_near() const { return false; }
    /// Why no more tasks can be paused, and what to do, where EngineHost::run_here() had to run some.
    [[nodiscard]] virtual std::string why_no_more_pause() const {
        return "a task cannot be paused where it is: there is no memory for a stack of its own. Let fewer "
               "tasks "
               "be paused at once, or raise the limit of address space (ulimit -v, the cgroup's memory.max, "
               "vm.overcommit_memory).";
    }
    /// In a task: pauses it as wait_for_wake() says, while the thread goes on with others. Throws kLimit
    /// where it cannot, and has not published it then.
    virtual void suspend(Announcement publish) = 0;
};

/// How an engine is found, asked for and made. Engines in libheddle.so have theirs in engine_registry.cpp;
/// the others are plug-ins, libheddle-engine-NAME.so, with an extern "C" function heddle_engine() that
/// returns one.
struct EngineFactory {
    const char* name;
    /// "" where the engine could be made now, else why not and what to do.
    std::string (*problem)();
    std::string (*version)();
    /// Throws Error.
    std::unique_ptr<Engine> (*make)(const EngineOptions& options);
    /// How it runs kernels that use its runtime's own words; null: a kernel is one of its tasks.
    const KernelRunner* kernels = nullptr;
    /// Once, before its first engine or kernel, in a thread that may run wherever the program's may.
    void (*prepare)() = nullptr;
};

/// Of an engine that can be made wherever its plug-in could be loaded.
[[nodiscard]] inline std::string no_problem() {
    return {};
}

template <class Made>
[[nodiscard]] constexpr EngineFactory engine_factory(const char* name, std::string (*version)(),
                                                     const KernelRunner* kernels = nullptr,
                                                     std::string (*problem)() = no_problem,
                                                     void (*prepare)() = nullptr) {
    return {name,
            problem,
            version,
            [](const EngineOptions& options) -> std::unique_ptr<Engine> {
                return std::make_unique<Made>(options);
            },
            kernels,
            prepare};
}

/// By name in any case; loads plug-ins. Throws kInvalidArgument for an unknown name, kUnavailable for one
/// that is known and not to be had.
[[nodiscard]] const EngineFactory& find_engine(std::string_view name);
[[nodiscard]] std::vector<EngineInfo> list_engines();

}  // namespace heddle
