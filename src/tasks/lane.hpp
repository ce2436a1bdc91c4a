// Lane: what a thread has of its own in a runtime: free records, tasks that could run, tasks just finished.
//
// A thread gets one with its first insertion or wait and keeps it until it ends; then the lane is another
// thread's, with the tasks that are left in it, which others may steal meanwhile. Only the thread itself uses
// its lane, except for the queue. A fiber that was paused may be on another thread afterwards: ask again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tasks/graph.hpp"
#include "tasks/ready_queue.hpp"

namespace heddle {

struct alignas(64) Lane {
    ReadyQueue queue;
    TaskMemory::Cache records;
    /// Tasks that ended here and are not yet counted in their sequence.
    SequenceState* finishing = nullptr;
    std::atomic<uint32_t> finished{0};  ///< written by the thread alone, as the counts below
    uint32_t index = 0;
    bool of_inserter = false;  ///< for LaneTable, which counts those
    /// Where the engine has bound the thread, or -1; a hint for who has a task that shall run there.
    std::atomic<int> cpu{-1};
    /// So far; written by the thread alone, read by others that look how it gets on.
    std::atomic<uint64_t> inserted{0}, ran{0}, ended{0};
    GraphSeat in_graph;
    std::atomic<uint64_t> replayed{0};   ///< started here by recordings, without being inserted again
    std::atomic<bool> in_engine{false};  ///< the thread may be in the engine; read by who switches it
};

/// One more, of what one thread writes alone.
template <class Number>
void count_one(std::atomic<Number>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// All lanes of a runtime. Outlives it where a thread still has one.
class LaneTable {
  public:
    /// Of threads that insert; as many more are left for those of engines.
    static constexpr uint32_t kMostInserters = 1024, kMost = 2048;

    /// Calls with a lane whose thread is going.
    using Leave = void (*)(detail::RuntimeState&, Lane&);
    LaneTable(detail::RuntimeState& runtime, Leave leave) : runtime_(&runtime), leave_(leave) {}

    /// Throws kLimit where too many threads have one, std::bad_alloc.
    [[nodiscard]] Lane& acquire(bool to_insert);
    void release(Lane& lane) noexcept;
    /// The runtime is going.
    void close() noexcept;

    /// Lanes 0 to size() - 1 exist.
    [[nodiscard]] uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
    [[nodiscard]] Lane& operator[](uint32_t index) noexcept { return *lanes_[index]; }

  private:
    std::mutex mutex_;
    detail::RuntimeState* runtime_;  // null once closed
    Leave leave_;
    std::array<std::unique_ptr<Lane>, kMost> lanes_;  // written under the mutex, before size_
    std::array<bool, kMost> taken_{};
    uint32_t inserters_ = 0;
    std::atomic<uint32_t> size_{0};
};

/// Of the calling thread, the lane that it asked for last: found without a look at the list. A table's memory
/// is not used again while the thread has a lane in it, so its address is enough of a name. Not looked at
/// twice in a function that may pause in between: a compiler may keep where a thread-local variable is.
struct LatestLane {
    const LaneTable* table = nullptr;
    Lane* lane = nullptr;
};
extern thread_local constinit LatestLane latest_lane [[gnu::tls_model("initial-exec")]];

// Where it is another one.
[[nodiscard]] Lane& look_up_lane(const std::shared_ptr<LaneTable>& table, bool to_insert);
[[nodiscard]] Lane* look_for_lane(const LaneTable& table) noexcept;

/// The calling thread's lane in the runtime that has this table. Throws as acquire() the first time.
[[nodiscard, gnu::noinline]] Lane& lane_of(const std::shared_ptr<LaneTable>& table);
/// The same for who inserts: of such threads there may be fewer. Inlined, as the next one; see LatestLane.
[[nodiscard]] inline Lane& lane_to_insert(const std::shared_ptr<LaneTable>& table) {
    return latest_lane.table == table.get() ? *latest_lane.lane : look_up_lane(table, true);
}
/// The same where there is one, else null.
[[nodiscard]] inline Lane* lane_if_any(const LaneTable& table) noexcept {
    return latest_lane.table == &table ? latest_lane.lane : look_for_lane(table);
}

}  // namespace heddle
