// The C interface: the order of tasks as a graph.
#include <cstring>

#include "heddle/dag.h"
#include "heddle/dag.hpp"
#include "tasks/c_interface.hpp"
#include "tasks/frame.hpp"

namespace heddle::c {
namespace {

struct DagObject {
    DagObject(RuntimeObject& runtime, size_t most_tasks)
        : dependent(runtime), dag(runtime.runtime, most_tasks) {}
    Dependent dependent;  // before the graph: counted until that is gone
    Dag dag;
};

Dag& dag_of(const heddle_dag_t* dag) {
    return object_of<DagObject>(dag, "graph of tasks").dag;
}

}  // namespace
}  // namespace heddle::c

using namespace heddle;
using namespace heddle::c;

heddle_dag_t* heddle_dag_create(heddle_runtime_t* runtime, size_t most_tasks) {
    return made<heddle_dag_t>([&] {
        return std::make_unique<DagObject>(c::object(runtime),
                                           most_tasks == 0 ? Dag::kMostTasks : most_tasks);
    });
}

size_t heddle_dag_tasks(const heddle_dag_t* dag) {
    size_t tasks = 0;
    (void)guarded([&] { tasks = dag_of(dag).tasks(); });
    return tasks;
}

heddle_task_ret_t heddle_dag_dot(const heddle_dag_t* dag, char* text, size_t size, size_t* length) {
    return guarded([&] {
        const std::string dot = dag_of(dag).dot();
        if (length != nullptr) *length = dot.size();
        if (text == nullptr) return;
        if (size <= dot.size())
            throw Error(ErrorCode::kLimit, "the graph of tasks takes " + std::to_string(dot.size() + 1) +
                                               " bytes, and there is room for " + std::to_string(size));
        std::memcpy(text, dot.c_str(), dot.size() + 1);
    });
}

heddle_task_ret_t heddle_dag_destroy(heddle_dag_t* dag) {
    return guarded([&] {
        (void)dag_of(dag);
        if (current_frame() != nullptr)
            refuse(
                "a task cannot destroy the graph of the tasks that it is one of: it would wait for itself");
        taken<DagObject>(dag).reset();
    });
}
