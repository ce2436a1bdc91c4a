// WorkLog: what the threads of this process work at, written to a trace file while they do.
//
// Each thread notes into a ring of its own; a thread of the log empties the rings into the file, twenty times
// a second. What does not fit into a ring meanwhile is dropped and counted, and the file is bounded as any
// trace: memory and disk have limits that no program exceeds. After a crash the file tells all but the last
// 50 ms. Any thread notes; one that notes nothing has no ring. A child of fork(2) notes nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "heddle/cpu_set.hpp"
#include "heddle/machine.hpp"
#include "trace/work_ring.hpp"
#include "trace/writer.hpp"

namespace heddle::trace {

class WorkLog {
  public:
    /// Pieces of work that a thread may note within 50 ms.
    static constexpr size_t kRing = size_t{1} << 14;
    /// With so many threads at once those beyond note nothing, which counts as dropped.
    static constexpr size_t kMostRings = 1024;

    /// Creates the file. Throws as TraceWriter.
    WorkLog(const std::string& path, const Machine& machine, const std::string& program);
    /// As finish().
    ~WorkLog();
    WorkLog(const WorkLog&) = delete;
    WorkLog& operator=(const WorkLog&) = delete;

    /// Of this process, in the file that HEDDLE_TRACE names; null where it names none, or in the child of a
    /// process that has one. Made at the first call, finished when the process exits, and never destroyed.
    /// Throws kSystem where the file cannot be written.
    [[nodiscard]] static WorkLog* of_process(const Machine& machine);

    /// For the calling thread. `kind` names its row, with a number, the first time: "native 3".
    void note(std::string_view kind, const NotedWork& work) noexcept;
    /// A row of its own, for whoever notes there, one thread at a time; null where there are too many. Throws
    /// std::bad_alloc.
    struct Ring;
    using Lane = Ring;
    [[nodiscard]] std::shared_ptr<Lane> open_lane(const std::string& row);
    void note(const std::shared_ptr<Lane>& lane, const NotedWork& work) noexcept;
    /// A number for a task whose pieces belong together.
    [[nodiscard]] int64_t number() noexcept { return numbers_.fetch_add(1, std::memory_order_relaxed) + 1; }
    /// Writes what was noted so far: whose names go away afterwards calls it before.
    void flush() noexcept;
    /// Ends the trace. What is noted later is dropped without a count.
    void finish() noexcept;

  private:
    class OfThread;

    Ring* ring_for(std::string_view kind) noexcept;
    std::shared_ptr<Ring> open_ring(std::string_view kind);
    void run();
    void drain();

    const uint64_t id_;  // another for each log, unlike its address
    const pid_t pid_;
    const CpuSet cpus_;  // that the file may name
    std::atomic<int64_t> numbers_{0};
    std::atomic<uint64_t> without_ring_{0};
    std::mutex mutex_;  // of all below
    TraceWriter writer_;
    std::vector<std::shared_ptr<Ring>> rings_;
    bool finished_ = false;
    bool full_ = false;
    bool stop_ = false;
    std::condition_variable stopped_;
    std::thread thread_;
};

struct WorkLog::Ring {
    WorkRing<kRing> work;
    std::string row;
    std::string kind;      // empty: no thread's
    bool is_lane = false;  // gone when nobody can note there any more
    std::atomic<bool> taken{
        true};  // by a thread, or by who opened it; written under the mutex, or at their end
};

}  // namespace heddle::trace
