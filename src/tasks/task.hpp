// Task: one insertion, from its allocation to its end; and what orders it among others.
//
// A record of TaskMemory: this header, then its accesses, notes and closure. Who inserts writes it until
// commit; from then on it is the graph's, then the engine's that runs it, then free again. The memory of a
// record stays a record of the same size for the life of its runtime, so that references to tasks that have
// ended may be looked at (TaskRef).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heddle/task.hpp"

namespace heddle {

struct DataState;
struct Placement;
struct PrivateCopy;
struct Task;
using detail::SequenceState;

/// "When this ends, `to` waits for one thing less": an entry of a task's list of successors. It lies in an
/// Access of one of the two.
struct Edge {
    Task* to;
    Edge* next;
};

/// One datum of one task. `in` goes to the list of the task that this one follows; `out` to this task's own
/// list, for the writer that follows this reader. No access has more than one of each.
struct Access {
    DataState* data;
    union {
        Edge in;                             ///< from the graph's look at it until the task could run
        const detail::Reduction* reduction;  ///< before that, with redux()
        PrivateCopy* copy;                   ///< and while it runs
    };
    Edge out;
    AccessMode mode;
    uint32_t group;  ///< with redux(): ReduxGroup::number
};

/// What makes a task more than a function that runs, in Task::special: most are none of it, which is one
/// question.
enum Special : uint16_t {
    kCommutes = 1,      ///< needs its turn with data, when nothing is before it any more
    kReduces = 2,       ///< has private copies of data
    kJoins = 4,         ///< of the graph's own: runs nothing, stands between those before and those after it
    kToldOfCancel = 8,  ///< its body wants BodyAction::kCancel
    kLooksOn = 16,      ///< writes nothing, whatever its accesses say: it only follows
    kPlaced = 32,       ///< has a Placement
    kRecorded = 64,     ///< stays, and is run by each replay
    kOutside = 128,     ///< for engines: in a graph that is not heddle's
    kDestroys = 256,    ///< its closure is to be destroyed behind it
    kAwaitsFutures = 512,  ///< of tasks that are not in its domain, so that nothing makes it follow them
};
/// When nothing is before it, Graph::admit() has something to do or to say.
inline constexpr uint8_t kAsksFirst = kCommutes | kJoins;

/// What is kept of TaskOptions.
struct TaskNotes {
    const char* name;
    const Placement* placement;  ///< with kPlaced
};

/// The priority of tasks that are begun when nothing else can run, or has been running for a while
/// (PriorityQueue).
inline constexpr int32_t kWhenNothingElseCan = INT32_MIN;

struct alignas(64) Task {
    /// Tasks that wait for this one; closed() from its end on, and in records without accesses always. Pushed
    /// to under the graph's lock, taken by who ends the task: acq_rel on both sides, so that successors see
    /// what this task wrote.
    std::atomic<Edge*> successors{closed()};
    /// Of the insertion; written under the graph's lock, and only with accesses.
    uint64_t id = 0;
    /// Predecessors that have not ended; while they are being found, as many as there can be. The release of
    /// each decrement and the acquire of the last order all predecessors before the task.
    std::atomic<int32_t> waits_for{0};
    int32_t priority = 0;
    uint32_t accesses = 0;
    uint8_t size_class = 0;
    bool named = false;    ///< has TaskNotes behind its accesses
    uint16_t special = 0;  ///< of Special
    union {
        SequenceState* sequence = nullptr;
        Task* next_chain;  ///< in TaskMemory: of the first record of a chain
    };
    detail::Body body = nullptr;
    Task* next = nullptr;  ///< in the one list that it is in: free records, the line, or ready tasks
    /// It was started in line (Graph::next_in_line()). For who has it to run.
    bool in_order = false;
    /// It looks after what is kept of its data elsewhere itself (KeptData).
    bool keeps_data = false;
    /// Of Failures, in which it was inserted; only with accesses.
    uint32_t era = 0;

    [[nodiscard]] static Edge* closed() { return reinterpret_cast<Edge*>(uintptr_t{1}); }
    [[nodiscard]] bool ended() const { return successors.load(std::memory_order_acquire) == closed(); }
    /// True: it was the last. At one all others have ended, or whoever adds the task has seen that they had:
    /// nobody else counts any more, and it is left at that.
    [[nodiscard]] bool predecessor_ended() noexcept {
        return waits_for.load(std::memory_order_acquire) == 1 ||
               waits_for.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }
    [[nodiscard]] Access* access(uint32_t index) { return reinterpret_cast<Access*>(this + 1) + index; }
    /// Where the closure of a task with so many accesses begins, from the end of this header.
    [[nodiscard]] static size_t closure_at(uint32_t accesses) {
        return (accesses * sizeof(Access) + sizeof(TaskNotes) + 15) / 16 * 16;
    }
    [[nodiscard]] void* closure() { return reinterpret_cast<std::byte*>(this + 1) + closure_at(accesses); }
    [[nodiscard]] TaskNotes& notes() { return *reinterpret_cast<TaskNotes*>(access(accesses)); }
};
static_assert(sizeof(Task) == 64);

/// A task that may have ended since, and its record been used again: under the graph's lock, live() tells.
struct TaskRef {
    Task* task = nullptr;
    uint64_t id = 0;
    Access* access = nullptr;

    [[nodiscard]] bool live() const { return task != nullptr && task->id == id && !task->ended(); }
};

}  // namespace heddle
