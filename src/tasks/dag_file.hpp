// DagFile: the graph of all tasks of a runtime, in the file that HEDDLE_DAG names.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "tasks/dag_log.hpp"

namespace heddle {

class DagFile {
  public:
    static constexpr size_t kMostTasks = 10'000;

    /// Null where HEDDLE_DAG is not set. The first runtime of the process has the file itself, the second one
    /// with -2 in its name, and so on. Throws kSystem where it cannot be written.
    [[nodiscard]] static std::unique_ptr<DagFile> from_environment();
    /// Writes it.
    ~DagFile();
    DagFile(const DagFile&) = delete;
    DagFile& operator=(const DagFile&) = delete;

    [[nodiscard]] DagLog& log() { return log_; }

  private:
    explicit DagFile(std::FILE* file) : file_(file), log_(kMostTasks) {}
    std::FILE* file_;
    DagLog log_;
};

}  // namespace heddle
