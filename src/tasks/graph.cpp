#include "tasks/graph.hpp"

#include <algorithm>
#include <mutex>

#include "tasks/data_state.hpp"

namespace heddle {
namespace {

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
    const uint32_t accesses = task.accesses;
    int32_t most = 0;  // predecessors that it can have
    for (uint32_t i = 0; i < accesses; ++i) {
        LastUses& uses = domain.of(*task.access(i)->data);
        const bool reads = task.access(i)->mode == AccessMode::kIn;
        if (reads) uses.make_room(accesses);
        most += reads || uses.readers.empty() ? 1 : static_cast<int32_t>(uses.readers.size());
    }
    task.id = ++last_id_;
    // Those that have ended are taken off afterwards. Where none has, the task may run, end, and its record
    // be used again from the last of them on.
    task.waits_for.store(most, std::memory_order_relaxed);
    task.successors.store(nullptr, std::memory_order_relaxed);
    int32_t before = 0;
    for (uint32_t i = 0; i < accesses; ++i)
        before += follow(task, *task.access(i), domain.of(*task.access(i)->data));
    if (before == most) return false;
    if (before == 0) return true;
    const int32_t ended = most - before;
    // acquire: where all have ended meanwhile, what they wrote is seen.
    return task.waits_for.fetch_sub(ended, std::memory_order_acq_rel) == ended;
}

int Graph::follow(Task& task, Access& access, LastUses& uses) noexcept {
    const TaskRef self{&task, task.id, &access};
    const bool reads = access.mode == AccessMode::kIn;  // the last link may be the end of the access
    int before = 0;
    const bool follows_writer = reads || uses.readers.empty();
    if (follows_writer && uses.writer.task != &task && uses.writer.live())
        before += link(uses.writer, access.in, task);
    if (reads) {
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
    if (edge == Task::closed()) return ready;  // it was in a graph of the engine's
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
