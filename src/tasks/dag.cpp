#include "heddle/dag.hpp"

#include "heddle/error.hpp"
#include "tasks/dag_log.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {

Dag::Dag(Runtime& runtime, size_t most_tasks)
    : runtime_(runtime), log_(std::make_unique<DagLog>(most_tasks)) {
    if (current_frame() != nullptr)
        throw Error(
            ErrorCode::kInvalidArgument,
            "a task cannot ask for the graph of the tasks that it is one of: let a thread outside do it");
    runtime_.wait();
    runtime_.state().graph.watch(*log_);
}

Dag::~Dag() {
    runtime_.wait();
    runtime_.state().graph.stop_watching(*log_);
}

size_t Dag::tasks() const {
    return runtime_.state().graph.told([&] { return log_->inserted; });
}

std::string Dag::dot() const {
    return runtime_.state().graph.told([&] { return log_->dot(); });
}

}  // namespace heddle
