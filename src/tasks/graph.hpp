// Graph: finds what each task has to wait for, from the data that it and the tasks before it name.
//
// One for a runtime; engines without a graph of their own stand on it. Any thread adds, one at a time under a
// short lock: between two tasks that share several data there is one order, never two. Ending a task takes no
// lock. What orders tasks: a reader follows the last writer; a writer follows all readers since the last
// writer, or that writer. Data are looked up in a Domain: that of the tasks that no task inserted, and one
// for the children of each task, who are ordered among themselves alone.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "cores/short_lock.hpp"
#include "tasks/task.hpp"

namespace heddle {

/// Who used a datum last, in one domain.
struct LastUses {
    TaskRef writer;
    std::vector<TaskRef> readers;  ///< since that writer

    /// Room for so many more readers; those that have ended make it.
    void make_room(size_t count);
};

class Domain {
  public:
    /// `parent`: the sequence of the task whose children these are; null at the root.
    explicit Domain(SequenceState* parent) : parent_(parent) {}
    [[nodiscard]] SequenceState* parent() const { return parent_; }
    /// Under the graph's lock. Throws std::bad_alloc.
    [[nodiscard]] LastUses& of(DataState& data);

  private:
    SequenceState* parent_;
    std::unordered_map<const DataState*, LastUses> uses_;  // not at the root, where data have it themselves
};

class Graph {
  public:
    /// Enters a task with accesses. True: it may run now; otherwise finish() of another task returns it.
    /// Throws std::bad_alloc, and has then done nothing.
    [[nodiscard]] bool add(Task& task, Domain& domain);
    /// The task has run. Returns those that were waiting for it alone, linked by `next`.
    [[nodiscard]] static Task* finish(Task& task) noexcept;

  private:
    [[nodiscard]] static int follow(Task& task, Access& access, LastUses& uses) noexcept;

    ShortLock lock_;
    uint64_t last_id_ = 0;
};

}  // namespace heddle
