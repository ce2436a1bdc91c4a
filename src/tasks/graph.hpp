// Graph: finds what each task has to wait for, from the data that it and the tasks before it name.
//
// One for a runtime; engines without a graph of their own stand on it. Any thread adds, one at a time under a
// short lock: between two tasks that share several data there is one order, never two. Ending a task takes no
// lock. What orders tasks: a reader follows the last writer; a writer follows all readers since the last
// writer, or that writer. Tasks that commute(), or redux() by the same function, are like readers among
// themselves (sharing.hpp has what else they need); between those and readers stands a join, a task without a
// body, so that each of the ones follows all of the others by one edge. Data are looked up in a Domain: that
// of the tasks that no task inserted, and one for the children of each task, who are ordered among themselves
// alone.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cores/short_lock.hpp"
#include "tasks/sharing.hpp"
#include "tasks/task_memory.hpp"

namespace heddle {

/// Who used a datum last, in one domain.
struct LastUses {
    TaskRef writer;
    std::vector<TaskRef> readers;           ///< since that writer
    AccessMode kind = AccessMode::kIn;      ///< of those; they are all of one
    std::unique_ptr<Sharing> sharing = {};  ///< made with the first task that commutes or reduces

    /// Room for so many more readers; those that have ended make it, unless they are kept.
    void make_room(size_t count, bool keep_ended);
    /// With no readers any more.
    void change_kind(AccessMode to) noexcept;
};

struct DagLog;

class Domain {
  public:
    /// `parent`: the sequence of the task whose children these are; null at the root.
    explicit Domain(SequenceState* parent) : parent_(parent) {}
    [[nodiscard]] SequenceState* parent() const { return parent_; }
    /// While no task is in it; null only at the root.
    void set_parent(SequenceState* parent) noexcept { parent_ = parent; }
    /// Under the graph's lock. Throws std::bad_alloc.
    [[nodiscard]] LastUses& of(DataState& data);
    /// The same for a datum that a task of this domain uses.
    [[nodiscard]] LastUses& known(DataState& data) noexcept;

  private:
    SequenceState* parent_;
    std::unordered_map<const DataState*, LastUses> uses_;  // not at the root, where data have it themselves
};

class Graph {
  public:
    /// Joins are records of this memory.
    explicit Graph(TaskMemory& memory) : memory_(memory) {}

    /// Enters a task with accesses. True: nothing is before it; otherwise finish() of another task returns
    /// it. Throws std::bad_alloc, and has then done nothing.
    [[nodiscard]] bool add(TaskMemory::Cache& cache, Task& task, Domain& domain);
    /// The same for one without accesses, of which somebody who watches is told.
    [[nodiscard]] bool add_alone(Task& task) noexcept {
        if (watched()) [[unlikely]]
            tell_alone(task);
        return true;
    }
    /// The task has run. Returns those that were waiting for it alone, linked by `next`. Of these admit()
    /// says who may run.
    [[nodiscard]] static Task* finish(Task& task) noexcept;

    /// Those that follow one that has not ended, near or far, as joins do: at most so many. They are there
    /// until that one ends. Throws std::bad_alloc.
    [[nodiscard]] std::vector<Task*> followers(const Task& task, size_t most);

    /// Tells of all that it finds from now on, to nobody with null. While no task is in it. False: it does so
    /// already.
    [[nodiscard]] bool watch(DagLog* log) noexcept;
    [[nodiscard]] bool watched() const noexcept { return watch_ != nullptr; }
    /// While nothing more is told.
    template <class Look>
    [[nodiscard]] auto told(const Look& look) {
        const std::lock_guard guard(lock_);
        return look();
    }

    /// For a task with a special before which nothing is: may it run? False: it waits for its turn, and
    /// end_turns() will return it; or it was a join, and those that come after it were put into `next`.
    [[nodiscard]] bool admit(TaskMemory::Cache& cache, Task& task, Task*& next) noexcept;
    /// A task that commutes has run. Returns those that have all their turns now, linked by `next`.
    [[nodiscard]] Task* end_turns(Task& task) noexcept;

    /// For engines that order tasks themselves: each that reduces is a group of its own. Throws
    /// std::bad_alloc.
    void reduce_alone(Task& task);

    // For recorded tasks, whose order is known, in a domain of their own.

    /// Data that some of them share. Throws std::bad_alloc.
    void share(Domain& domain, DataState& data);
    /// Before a replay: what an earlier one may have left behind.
    void forget_groups(Domain& domain, DataState& data) noexcept;
    /// So many of them will reduce. Throws std::bad_alloc.
    void start_group(Domain& domain, DataState& data, const detail::Reduction* reduction, uint32_t number,
                     uint32_t members);

    /// Before a task that reduces runs, or is cancelled.
    static void begin_reducing(Task& task) noexcept;
    /// For a task that runs, in an access with redux(): a copy that nobody else uses, as others left it or
    /// newly filled with the neutral element. Throws kLimit.
    [[nodiscard]] const detail::DataView& private_copy(Task& task, Access& access,
                                                       const detail::Reduction& reduction,
                                                       const void* neutral);
    /// A task that reduces has run, or never will. The last of its group combines what all have done into the
    /// data; throws what the function throws.
    void end_reducing(Task& task);

  private:
    void tell_alone(Task& task) noexcept;
    void tell(const Task& task, Domain& domain) noexcept;
    void tell_join(const Task& task, const DataState* data, const LastUses& uses) noexcept;
    [[nodiscard]] int follow(Task& task, Access& access, LastUses& uses) noexcept;
    void prepare(TaskMemory::Cache& cache, const Access& access, LastUses& uses);
    void join(TaskMemory::Cache& cache, const DataState* data, LastUses& uses);
    void enter_group(Access& access, Sharing& sharing) noexcept;
    [[nodiscard]] static bool take_turns(Task& task) noexcept;

    TaskMemory& memory_;
    ShortLock lock_;
    uint64_t last_id_ = 0;
    uint32_t last_group_ = 0;
    DagLog* watch_ = nullptr;  // written while no task is in the graph
};

}  // namespace heddle
