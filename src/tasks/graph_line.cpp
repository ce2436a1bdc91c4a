// The line of a Graph: tasks that were added, and whose order nobody has had to find so far.
#include <mutex>
#include <new>

#include "tasks/graph.hpp"

namespace heddle {
bool Graph::add(TaskMemory::Cache& cache, GraphSeat& seat, Task& task, Domain& domain) {
    const BiasedLock::Guard guard(lock_, seat.key);
    if (domain.is_root()) enter_line();
    return enter(cache, task, domain, 0);
}

void Graph::enter_line(uint32_t most) {
    if (in_order_ != nullptr) {
        (void)enter(joins_, *in_order_, root_, 0);  // nothing is before it: it runs
        in_order_ = nullptr;
    }
    for (; line_.first != nullptr && most > 0; --most) {
        Task& task = *line_.first;
        Task* const behind = task.next;  // once it is entered it may run, end, and be another task
        const bool could_run = enter(joins_, task, root_, 1);
        line_.first = behind;
        if (could_run)
            found_.append(task);
        else
            count_in_line(-1);
    }
}

bool Graph::put_back(GraphSeat& seat, Task& task) noexcept {
    const BiasedLock::Guard guard(lock_, seat.key);
    if (in_order_ != &task) return false;
    in_order_ = nullptr;
    task.in_order = false;
    line_.prepend(task);
    count_in_line(1);
    return true;
}

Task* Graph::find_in_line(uint32_t most) noexcept {
    try {
        enter_line(most);
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
        count_in_line(-1);
    }
    if (last != nullptr) last->next = nullptr;
    return first;
}

}  // namespace heddle
