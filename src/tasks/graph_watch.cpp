// What a Graph tells its DagLog: the same looks at who used the data last, without asking who has ended.
#include <utility>

#include "tasks/dag_log.hpp"
#include "tasks/graph.hpp"

namespace heddle {

bool Graph::watch(DagLog* log) noexcept {
    const std::lock_guard guard(lock_);
    if (log != nullptr && watch_ != nullptr) return false;
    watch_ = log;
    return true;
}

void Graph::tell_alone(Task& task) noexcept {
    const std::lock_guard guard(lock_);
    task.id = ++last_id_;
    watch_->task(task);
}

void Graph::tell(const Task& task, Domain& domain) noexcept {
    using Order = DagLog::Order;
    watch_->task(task);
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const Access& access = *const_cast<Task&>(task).access(i);
        const LastUses& uses = domain.known(*access.data);
        const bool writes_alone = access.mode == AccessMode::kOut || access.mode == AccessMode::kInOut;
        if (writes_alone && !uses.readers.empty()) {
            const Order order =
                uses.kind == AccessMode::kIn ? Order::kWriteAfterRead : Order::kWriteAfterWrite;
            for (const TaskRef& reader : uses.readers) watch_->edge(reader.id, task.id, order, access.data);
        } else if (uses.writer.task != nullptr) {
            const Order order =
                access.mode == AccessMode::kOut ? Order::kWriteAfterWrite : Order::kReadAfterWrite;
            watch_->edge(uses.writer.id, task.id, order, access.data);
        }
    }
}

void Graph::tell_join(const Task& task, const DataState* data, const LastUses& uses) noexcept {
    watch_->join(task.id);
    const auto order =
        uses.kind == AccessMode::kIn ? DagLog::Order::kWriteAfterRead : DagLog::Order::kReadAfterWrite;
    for (const TaskRef& reader : uses.readers) watch_->edge(reader.id, task.id, order, data);
}

}  // namespace heddle
