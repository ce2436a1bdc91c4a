// Dag: the tasks of a runtime and what each had to wait for, as a graph to look at.
//
//     heddle::Dag dag(runtime);
//     ... insert, wait ...
//     std::ofstream("tasks.dot") << dag.dot();          // dot -Tsvg tasks.dot -o tasks.svg
//
// It holds what heddle's own graph of dependencies found, whether a task had ended by then or not, so it is
// the same for each run of the same insertions. While it lives tasks are ordered by that graph on every
// engine. For small programs: it keeps up to a bound of tasks, and says how many there were. HEDDLE_DAG=FILE
// writes that of a whole program, for each of its runtimes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "heddle/export.hpp"
#include "heddle/task.hpp"

namespace heddle {

struct DagLog;

class HEDDLE_API Dag {
  public:
    static constexpr size_t kMostTasks = 2'000;

    /// Waits for all tasks; no other thread may insert meanwhile. A runtime may have several. Throws
    /// kInvalidArgument in a task. The runtime must outlive it.
    explicit Dag(Runtime& runtime, size_t most_tasks = kMostTasks);
    /// As the constructor.
    ~Dag();
    Dag(const Dag&) = delete;
    Dag& operator=(const Dag&) = delete;

    /// Inserted so far, also those that it had no room for.
    [[nodiscard]] size_t tasks() const;
    /// In Graphviz' language: a colour for each name, and what orders two tasks as a tooltip of the edge.
    /// Tasks that there was no room for are a number in a last node.
    [[nodiscard]] std::string dot() const;

  private:
    Runtime& runtime_;
    std::unique_ptr<DagLog> log_;
};

}  // namespace heddle
