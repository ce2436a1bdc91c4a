#include "tasks/graph.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

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

/// Nobody can follow it any more. Returns who does; closed() where it was so before.
Edge* close(Task& task) noexcept {
    return task.successors.exchange(Task::closed(), std::memory_order_acq_rel);
}

/// Those that wait for nothing any more, linked by `next`.
Task* release(Edge* edge) noexcept {
    Task* ready = nullptr;
    while (edge != nullptr) {
        Task& next = *edge->to;
        edge = edge->next;  // before the decrement: the edge may lie in that task, which may then run and end
        if (!next.predecessor_ended()) continue;
        next.next = ready;
        ready = &next;
    }
    return ready;
}

/// May it be done beside others of its kind?
bool goes_beside(AccessMode mode) noexcept {
    return mode != AccessMode::kOut && mode != AccessMode::kInOut;
}

}  // namespace

void LastUses::change_kind(AccessMode to) noexcept {
    if (sharing != nullptr && sharing->groups != nullptr) sharing->groups->open = false;
    kind = to;
}

void LastUses::make_room(size_t count, bool keep_ended) {
    if (readers.size() + count <= readers.capacity()) return;
    if (!keep_ended) std::erase_if(readers, [](const TaskRef& reader) { return !reader.live(); });
    if (readers.size() + count > readers.capacity() / 2)
        readers.reserve(std::max<size_t>(4, 2 * (readers.size() + count)));
}

LastUses& Domain::of(DataState& data) {
    return parent_ == nullptr ? data.uses : uses_[&data];
}

LastUses& Domain::known(DataState& data) noexcept {
    return parent_ == nullptr ? data.uses : uses_.find(&data)->second;
}

bool Graph::enter(TaskMemory::Cache& cache, Task& task, Domain& domain, int32_t held) {
    // What may fail comes first.
    const uint32_t accesses = task.accesses;
    int32_t most = 0;  // predecessors that it can have
    for (uint32_t i = 0; i < accesses; ++i) {
        const Access& access = *task.access(i);
        LastUses& uses = domain.of(*access.data);
        const bool beside = goes_beside(access.mode);
        if (beside) {
            if (access.mode != uses.kind || access.mode == AccessMode::kRedux) prepare(cache, access, uses);
            uses.make_room(accesses, watched());
        }
        most += beside || uses.readers.empty() ? 1 : static_cast<int32_t>(uses.readers.size());
    }
    task.id = ++last_id_;
    ++entered_;
    if (watched()) [[unlikely]]
        tell(task, domain);
    // Those that have ended are taken off afterwards. Where none has, and nothing holds the task, it may run,
    // end, and its record be used again from the last of them on.
    task.waits_for.store(most + held, std::memory_order_relaxed);
    task.successors.store(nullptr, std::memory_order_relaxed);
    int32_t before = 0;
    for (uint32_t i = 0; i < accesses; ++i)
        before += follow(task, *task.access(i), domain.of(*task.access(i)->data));
    if (before == 0) return true;
    const int32_t off = most - before + held;
    // acquire: where all have ended meanwhile, what they wrote is seen; release: who runs it may end the
    // data.
    return off > 0 && task.waits_for.fetch_sub(off, std::memory_order_acq_rel) == off;
}

int Graph::follow(Task& task, Access& access, LastUses& uses) noexcept {
    const TaskRef self{&task, task.id, &access};
    const bool beside = goes_beside(access.mode);  // the last link may be the end of the access
    if (access.mode == AccessMode::kRedux) enter_group(access, *uses.sharing);
    int before = 0;
    const bool follows_writer = beside || uses.readers.empty();
    if (follows_writer && uses.writer.task != &task && uses.writer.live())
        before += link(uses.writer, access.in, task);
    if (beside) {
        uses.readers.push_back(self);
        return before;
    }
    for (const TaskRef& reader : uses.readers)
        if (reader.task != &task && reader.live()) before += link(reader, reader.access->out, task);
    uses.readers.clear();
    uses.writer = self;
    if (uses.kind != AccessMode::kIn) uses.change_kind(AccessMode::kIn);
    return before;
}

/// An access that goes beside others, but not beside those of the last kind.
void Graph::prepare(TaskMemory::Cache& cache, const Access& access, LastUses& uses) {
    if (access.mode != AccessMode::kIn && uses.sharing == nullptr) uses.sharing = std::make_unique<Sharing>();
    bool other = access.mode != uses.kind;
    if (access.mode == AccessMode::kRedux) {
        Sharing& sharing = *uses.sharing;
        const ReduxGroup* newest = sharing.groups.get();
        if (newest == nullptr || !newest->open || newest->reduction != access.reduction)
            if (sharing.spare == nullptr) sharing.spare = std::make_unique<ReduxGroup>();
        if (newest != nullptr && newest->open && newest->reduction != access.reduction) other = true;
    }
    if (!other) return;
    if (!uses.readers.empty()) join(cache, access.data, uses);
    uses.change_kind(access.mode);
}

/// Puts a task behind all of `uses.readers`, which is then the writer that others follow.
void Graph::join(TaskMemory::Cache& cache, const DataState* data, LastUses& uses) {
    Task& task = memory_.allocate(cache, sizeof(Task) + Task::closure_at(1));
    Access& access = *task.access(0);
    access.data = nullptr;
    access.mode = AccessMode::kOut;
    task.accesses = 1;
    task.priority = 0;
    task.special = kJoins;
    task.sequence = nullptr;
    task.body = nullptr;
    task.id = ++last_id_;
    if (watched()) tell_join(task, data, uses);
    const auto most = static_cast<int32_t>(uses.readers.size());
    task.waits_for.store(most + 1, std::memory_order_relaxed);  // and for the end of this function
    task.successors.store(nullptr, std::memory_order_relaxed);
    int32_t before = 0;
    for (const TaskRef& reader : uses.readers)
        if (reader.live()) before += link(reader, reader.access->out, task);
    uses.readers.clear();
    uses.writer = {&task, task.id, &access};
    const int32_t off = most - before + 1;
    if (task.waits_for.fetch_sub(off, std::memory_order_acq_rel) != off) return;
    (void)close(task);  // all have ended, and nobody can follow it while this function has the lock
    memory_.free(cache, task);
}

bool Graph::admit(TaskMemory::Cache& cache, Task& task, Task*& next) noexcept {
    if ((task.special & kJoins) != 0) {
        Task* after = release(close(task));
        memory_.free(cache, task);
        while (after != nullptr) {
            Task& one = *std::exchange(after, after->next);
            one.next = std::exchange(next, &one);
        }
        return false;
    }
    if ((task.special & kCommutes) == 0) return true;
    task.waits_for.store(0, std::memory_order_relaxed);
    const std::lock_guard guard(lock_);
    return take_turns(task);
}

std::vector<Task*> Graph::followers(Task& task, size_t most) {
    std::vector<Task*> found;
    std::vector<bool> waits_for_turn;  // of each that was found
    const auto add = [&](Task* one, bool for_turn) {
        if (found.size() == most || std::ranges::find(found, one) != found.end()) return;
        found.push_back(one);
        waits_for_turn.push_back(for_turn);
    };
    const auto look = [&](Task& one, bool has_turns) {
        const Edge* edge = one.successors.load(std::memory_order_acquire);
        for (; edge != nullptr && edge != Task::closed(); edge = edge->next) add(edge->to, false);
        if (has_turns) for_each_waiting(one, [&](Task& waiting) { add(&waiting, true); });
    };
    if (task.accesses == 0) return found;
    // None of them can end, or have its edges changed by more than what is added to them here.
    const std::lock_guard guard(lock_);
    enter_line(seatless_);
    if (task.successors.load(std::memory_order_acquire) == Task::closed()) return found;
    found.reserve(most);
    look(task, true);
    for (size_t i = 0; i < found.size(); ++i) look(*found[i], waits_for_turn[i]);
    return found;
}

Task* Graph::finish_entered(Task& task, GraphSeat& seat) noexcept {
    Edge* const edges = close(task);
    if (edges == Task::closed()) return nullptr;  // it was in a graph of the engine's
    // release: who reads that all have left sees what they wrote.
    seat.left.store(seat.left.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return release(edges);
}

}  // namespace heddle
