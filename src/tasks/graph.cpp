#include "tasks/graph.hpp"

#include <algorithm>
#include <mutex>

#include "tasks/data_state.hpp"

namespace heddle {
namespace {

/// More than a task can have predecessors: while they are being found none of them is the last.
constexpr int32_t kBias = 1 << 30;

/// `task` shall follow `before`. False: that has ended.
bool link(const TaskRef& before, Edge& edge, Task& task) noexcept {
    edge.to = &task;
    Edge* head = before.task->successors.load(std::memory_order_acquire);
    do {
        if (head == Task::closed()) return false;
        edge.next = head;
    } while (!before.task->successors.compare_exchange_weak(head, &edge, std::memory_order_release,
                                                            std::memory_order_acquire));
    return true;
}

}  // namespace

void LastUses::make_room(size_t count) {
    if (readers.size() + count <= readers.capacity()) return;
    std::erase_if(readers, [](const TaskRef& reader) { return !reader.live(); });
    if (readers.size() + count > readers.capacity() / 2)
        readers.reserve(std::max<size_t>(4, 2 * (readers.size() + count)));
}

LastUses& Domain::of(DataState& data) {
    return parent_ == nullptr ? data.uses : uses_[&data];
}

bool Graph::add(Task& task, Domain& domain) {
    const std::lock_guard guard(lock_);
    // What may fail comes first.
    for (uint32_t i = 0; i < task.accesses; ++i) {
        LastUses& uses = domain.of(*task.access(i)->data);
        if (task.access(i)->mode == AccessMode::kIn) uses.make_room(task.accesses);
    }
    task.id = ++last_id_;
    task.waits_for.store(kBias, std::memory_order_relaxed);
    task.successors.store(nullptr, std::memory_order_relaxed);
    int before = 0;
    for (uint32_t i = 0; i < task.accesses; ++i)
        before += follow(task, *task.access(i), domain.of(*task.access(i)->data));
    if (before == 0) return true;
    const int32_t taken = kBias - before;
    // acquire: where all have ended meanwhile, what they wrote is seen.
    return task.waits_for.fetch_sub(taken, std::memory_order_acq_rel) == taken;
}

int Graph::follow(Task& task, Access& access, LastUses& uses) noexcept {
    const TaskRef self{&task, task.id, &access};
    int before = 0;
    const bool follows_writer = access.mode == AccessMode::kIn || uses.readers.empty();
    if (follows_writer && uses.writer.task != &task && uses.writer.live())
        before += link(uses.writer, access.in, task);
    if (access.mode == AccessMode::kIn) {
        uses.readers.push_back(self);
        return before;
    }
    for (const TaskRef& reader : uses.readers)
        if (reader.task != &task && reader.live()) before += link(reader, reader.access->out, task);
    uses.readers.clear();
    uses.writer = self;
    return before;
}

Task* Graph::finish(Task& task) noexcept {
    Task* ready = nullptr;
    if (task.accesses == 0) return ready;
    Edge* edge = task.successors.exchange(Task::closed(), std::memory_order_acq_rel);
    while (edge != nullptr) {
        Task& next = *edge->to;
        edge = edge->next;  // before the decrement: the edge may lie in that task, which may then run and end
        if (next.waits_for.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        next.next = ready;
        ready = &next;
    }
    return ready;
}

}  // namespace heddle
