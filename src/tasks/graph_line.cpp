// The line of a Graph: tasks that were added, and whose order nobody has had to find so far.
#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "tasks/graph.hpp"

namespace heddle {
bool Graph::add(TaskMemory::Cache& cache, GraphSeat& seat, Task& task, Domain& domain) {
    const BiasedLock::Guard guard(lock_, seat.key);
    if (domain.is_root()) enter_line(seat);
    return enter(cache, task, domain, 0);
}

void Graph::take_end(GraphSeat& seat) noexcept {
    const BiasedLock::Guard guard(end_lock_, seat.at_end);
    line_ = std::exchange(end_, {});
    taken_ = came_.load(std::memory_order_relaxed);
}

void Graph::enter_line(GraphSeat& seat, uint32_t most) {
    if (in_order_ != nullptr) {
        (void)enter(joins_, *in_order_, root_, 0);  // nothing is before it: it runs
        in_order_ = nullptr;
    }
    // Not what comes meanwhile, which may be without an end.
    for (most = std::min(most, in_line()); most > 0 && any_in_line(seat); --most) {
        Task& task = *line_.first;
        Task* const behind = task.next;  // once it is entered it may run, end, and be another task
        const bool could_run = enter(joins_, task, root_, 1);
        line_.first = behind;
        if (could_run)
            found_.append(task);
        else
            count_gone(1);
    }
}

bool Graph::put_back(GraphSeat& seat, Task& task) noexcept {
    const BiasedLock::Guard guard(lock_, seat.key);
    if (in_order_ != &task) return false;
    in_order_ = nullptr;
    task.in_order = false;
    line_.prepend(task);
    count_gone(-1);
    return true;
}

Task* Graph::find_in_line(GraphSeat& seat, uint32_t most) noexcept {
    try {
        enter_line(seat, most);
    } catch (...) {
        // Those behind wait until there is memory, or until they may run in their order.
    }
    return take_found(most);
}

Task* Graph::take_found(uint32_t most) noexcept {
    Task* const first = found_.first;
    Task* last = nullptr;
    for (; found_.first != nullptr && most > 0; --most) {
        last = found_.first;
        found_.first = last->next;
        count_gone(1);
    }
    if (last != nullptr) last->next = nullptr;
    return first;
}

}  // namespace heddle
