// RecordingState: recorded tasks, the order among them, and how they are run.
//
// One thread records, the first replay of any seals it. A replay is a task of the graph (the gate) that
// uses all data of the recording, and a datum of its own besides, so that there is one replay at a time. The
// gate starts the tasks that are first and waits for the rest, which are counted in a sequence of their own.
// Gates that different tasks insert are not ordered by data; one that finds another at work ends with an
// error.
//
// A recorded task keeps its record. Its Task::id is the address of its entry in `links_`: how many come
// before it, then those that come after it, then 0. Who ends takes one off each of these, and sets his own
// count for the next replay.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tasks/runtime_state.hpp"

namespace heddle::detail {

struct RecordingState : std::enable_shared_from_this<RecordingState> {
    explicit RecordingState(Runtime& its_runtime);
    /// With the last replay, or later. Each has a share.
    ~RecordingState();

    /// A task with its accesses named. Throws kInvalidArgument when sealed, std::bad_alloc; nothing is
    /// recorded then.
    void add(Task& task);
    void replay(SequenceState& into);
    void wait_for_replays() noexcept;
    /// The calling thread is in one of its tasks, or in a task that one of them has inserted.
    [[nodiscard]] bool runs_caller() const noexcept;

    /// A recorded task has run. Returns those for which it was the last before them, linked by `next`.
    [[nodiscard]] static Task* finish(Task& task) noexcept {
        const auto* link = reinterpret_cast<const uintptr_t*>(task.id);
        task.waits_for.store(static_cast<int32_t>(*link++), std::memory_order_relaxed);
        Task* ready = nullptr;
        for (; *link != 0; ++link) {
            Task& next = *reinterpret_cast<Task*>(*link);
            if (!next.predecessor_ended()) continue;
            next.next = ready;
            ready = &next;
        }
        return ready;
    }

    RuntimeState& runtime;
    /// Of the recorded tasks. Its domain is their own; the parent of that is where the gate is, during a
    /// replay.
    const std::shared_ptr<SequenceState> tasks;
    [[nodiscard]] size_t size() const { return size_; }

  private:
    static constexpr uint32_t kNone = UINT32_MAX;
    /// Of one datum, while recording: as LastUses, by number of task.
    struct Use {
        uint32_t writer = kNone;
        std::vector<uint32_t> beside;
        AccessMode kind = AccessMode::kIn;  ///< of those beside each other
        uint32_t group = kNone;             ///< with kRedux: of groups_
        AccessMode gate = AccessMode::kIn;  ///< what the recording as a whole does with it
        bool seen = false;
    };
    struct Recorded {
        Task* task;
        bool destroys;  ///< its closure, with the recording; the task itself says that it does not
    };
    struct Edge {
        uint32_t from, to;
    };
    struct Group {
        DataState* data;
        const Reduction* reduction;
        uint32_t members;
    };

    [[nodiscard]] bool waited() const;
    [[nodiscard]] Use& use_of(DataState& data);
    void prepare(Access& access, uint32_t accesses);
    void join(Use& use);
    void append(Task& task, std::vector<uint32_t>& before);
    void enter(Access& access, uint32_t number) noexcept;
    void seal();
    class OneReplay;
    void start();
    static void gate(void* closure, BodyAction action);

    /// Counts gates, whichever sequences they are in.
    const std::shared_ptr<SequenceState> gates_;
    const std::shared_ptr<SequenceState> outside_;  // the parent of the tasks' domain between replays
    DataHandle self_;
    std::unordered_map<DataState*, Use> uses_;
    std::vector<DataState*> data_;  // in the order of their first use
    std::vector<Recorded> recorded_;
    std::vector<Edge> edges_;  // empty when sealed
    std::vector<Group> groups_;
    size_t size_ = 0;  // without joins

    std::atomic<bool> replaying_{false};
    std::mutex sealing_;  // of threads that replay
    bool sealed_ = false;
    std::vector<uintptr_t> links_;
    std::vector<Task*> first_;
};

}  // namespace heddle::detail
