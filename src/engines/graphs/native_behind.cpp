#include "engines/graphs/native_behind.hpp"

#include <utility>

#include "tasks/task.hpp"

namespace heddle {
namespace {

/// Where a task that the foreign graph knows has what it has there: its first access has no edge, as heddle's
/// graph does not know it.
Edge*& in_graph_of(Task& task) {
    return task.access(0)->out.next;
}

/// Takes out of the task what the foreign graph has of it, if that knows it.
InGraph* let_go(Task& task) noexcept {
    if ((task.special & kOutside) == 0) return nullptr;
    task.special &= static_cast<uint16_t>(~kOutside);
    return reinterpret_cast<InGraph*>(std::exchange(in_graph_of(task), nullptr));
}

}  // namespace

NativeBehind::NativeBehind(const EngineOptions& options) : host_(options.host), options_(options) {
    const EngineOptions behind{
        *this,        options.machine,      options.provider, options.cpus,       options.workers,
        options.bind, options.callers_work, options.devices,  options.stack_bytes};
    native_ = options.host.make_native(behind);
}

void NativeBehind::stop_native() {
    // The pointer holds until that is done.
    delete native_.get();
    (void)native_.release();
}

void NativeBehind::mark(Task& task, InGraph& in_graph) noexcept {
    task.special |= kOutside;
    in_graph_of(task) = reinterpret_cast<Edge*>(&in_graph);
}

void NativeBehind::may_run(Lane& lane, Task& task, InGraph& in_graph) noexcept {
    task.next = nullptr;
    mark(task, in_graph);
    try {
        native_->ready(lane, task);
    } catch (...) {
        // No memory to keep it: it runs here and now.
        for (Task* now = &task; now != nullptr;) now = run_here(lane, *now);
        host_.flush(lane);
    }
}

Task* NativeBehind::run(Lane*& lane, Task& task) noexcept {
    InGraph* const in_graph = let_go(task);
    Task* const continuation = host_.run(lane, task);
    return in_graph == nullptr ? continuation : ended(*lane, *in_graph, continuation);
}

Task* NativeBehind::run_here(Lane& lane, Task& task) noexcept {
    InGraph* const in_graph = let_go(task);
    Task* const continuation = host_.run_here(lane, task);
    return in_graph == nullptr ? continuation : ended(lane, *in_graph, continuation);
}

}  // namespace heddle
