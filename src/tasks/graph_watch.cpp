// What a Graph tells its DagLogs: the same looks at who used the data last, without asking who has ended.
#include <utility>

#include "tasks/dag_log.hpp"
#include "tasks/graph.hpp"

namespace heddle {

void Graph::watch(DagLog& log) noexcept {
    const std::lock_guard guard(lock_);
    log.next = std::exchange(watchers_, &log);
}

void Graph::stop_watching(const DagLog& log) noexcept {
    const std::lock_guard guard(lock_);
    DagLog** at = &watchers_;
    while (*at != &log) at = &(*at)->next;
    *at = log.next;
}

template <class Tell>
void Graph::tell_watchers(const Tell& tell) const noexcept {
    for (DagLog* log = watchers_; log != nullptr; log = log->next) tell(*log);
}

void Graph::tell_alone(Task& task) noexcept {
    const std::lock_guard guard(lock_);
    task.id = ++last_id_;
    tell_watchers([&](DagLog& log) { log.task(task); });
}

void Graph::tell(const Task& task, Domain& domain) noexcept {
    using Order = DagLog::Order;
    tell_watchers([&](DagLog& log) { log.task(task); });
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const Access& access = *const_cast<Task&>(task).access(i);
        const LastUses& uses = domain.known(*access.data);
        const bool writes_alone = access.mode == AccessMode::kOut || access.mode == AccessMode::kInOut;
        const auto follows = [&](const TaskRef& before, Order order) {
            tell_watchers([&](DagLog& log) { log.edge(before.id, task.id, order, access.data); });
        };
        if (writes_alone && !uses.readers.empty()) {
            const Order order =
                uses.kind == AccessMode::kIn ? Order::kWriteAfterRead : Order::kWriteAfterWrite;
            for (const TaskRef& reader : uses.readers) follows(reader, order);
        } else if (uses.writer.task != nullptr) {
            follows(uses.writer,
                    access.mode == AccessMode::kOut ? Order::kWriteAfterWrite : Order::kReadAfterWrite);
        }
    }
}

void Graph::tell_join(const Task& task, const DataState* data, const LastUses& uses) noexcept {
    const auto order =
        uses.kind == AccessMode::kIn ? DagLog::Order::kWriteAfterRead : DagLog::Order::kReadAfterWrite;
    tell_watchers([&](DagLog& log) {
        log.join(task.id);
        for (const TaskRef& reader : uses.readers) log.edge(reader.id, task.id, order, data);
    });
}

}  // namespace heddle
