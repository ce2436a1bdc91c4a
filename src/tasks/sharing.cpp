#include "tasks/sharing.hpp"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

/// Of a task that has been through the graph or reduce_alone().
Sharing& sharing_of(const Task& task, const Access& access) noexcept {
    return *task.sequence->domain->known(*access.data).sharing;
}

template <AccessMode M, class Function>
void for_each(Task& task, Function function) {
    for (uint32_t i = 0; i < task.accesses; ++i)
        if (task.access(i)->mode == M) function(*task.access(i));
}

std::unique_ptr<PrivateCopy> new_copy(const detail::DataView& of, const detail::Reduction& reduction,
                                      const void* neutral) {
    const size_t bytes = of.rows * of.columns * of.element_bytes;
    try {
        auto copy = std::make_unique<PrivateCopy>();
        copy->elements = Elements(bytes);
        copy->view = {copy->elements.get(), of.rows, of.columns, of.rows, of.element_bytes};
        reduction.fill(copy->view, neutral);
        return copy;
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::kLimit,
                    fmt::format("there is no memory for a private copy of data of {} bytes", bytes));
    }
}

}  // namespace

void Sharing::wait(Task& task) noexcept {
    Task** link = &first_waiting;
    if (first_waiting != nullptr && task.priority <= last->priority) link = &last->next;
    while (*link != nullptr && (*link)->priority >= task.priority) link = &(*link)->next;
    task.next = std::exchange(*link, &task);
    if (task.next == nullptr) last = &task;
}

Task* Sharing::pop_waiting() noexcept {
    Task* task = first_waiting;
    if (task != nullptr) first_waiting = task->next;
    return task;
}

ReduxGroup& Sharing::group(uint32_t number) noexcept {
    ReduxGroup* group = groups.get();
    while (group->number != number) group = group->older.get();
    return *group;
}

void Sharing::drop(const ReduxGroup& group) noexcept {
    std::unique_ptr<ReduxGroup>* link = &groups;
    while (link->get() != &group) link = &(*link)->older;
    *link = std::move((*link)->older);
}

/// All tasks take their turns in the order of addresses, so no circle of them waits. Task::waits_for, which
/// nobody looks at from now on, says how far it came: 1 + the index of the access of its last turn.
bool Graph::take_turns(Task& task) noexcept {
    while (true) {
        const int32_t last = task.waits_for.load(std::memory_order_relaxed);
        Access* next = nullptr;
        for_each<AccessMode::kCommute>(task, [&](Access& access) {
            if ((last == 0 || access.data > task.access(static_cast<uint32_t>(last) - 1)->data) &&
                (next == nullptr || access.data < next->data))
                next = &access;
        });
        if (next == nullptr) return true;
        task.waits_for.store(static_cast<int32_t>(next - task.access(0)) + 1, std::memory_order_relaxed);
        Sharing& sharing = sharing_of(task, *next);
        if (sharing.taken) {
            sharing.wait(task);
            return false;
        }
        sharing.taken = true;
    }
}

void Graph::for_each_waiting(Task& task, const std::function<void(Task&)>& look) {
    if ((task.special & kCommutes) == 0) return;
    // One that waits for a turn itself has those before it; one that runs has all.
    const int32_t last = task.waits_for.load(std::memory_order_relaxed);
    const Access* const wanted = last == 0 ? nullptr : task.access(static_cast<uint32_t>(last) - 1);
    const bool has_wanted = wanted == nullptr || !is_waiting(task, *wanted);
    for_each<AccessMode::kCommute>(task, [&](Access& access) {
        if (!has_wanted && access.data >= wanted->data) return;
        for (Task* one = sharing_of(task, access).first_waiting; one != nullptr; one = one->next) look(*one);
    });
}

bool Graph::is_waiting(const Task& task, const Access& access) noexcept {
    const Task* one = sharing_of(task, access).first_waiting;
    while (one != nullptr && one != &task) one = one->next;
    return one != nullptr;
}

Task* Graph::end_turns(Task& task) noexcept {
    const std::lock_guard guard(lock_);
    Task* ready = nullptr;
    for_each<AccessMode::kCommute>(task, [&](Access& access) {
        Sharing& sharing = sharing_of(task, access);
        Task* const next = sharing.pop_waiting();
        sharing.taken = next != nullptr;
        if (next != nullptr && take_turns(*next)) next->next = std::exchange(ready, next);
    });
    return ready;
}

void Graph::enter_group(Access& access, Sharing& sharing) noexcept {
    if (sharing.groups == nullptr || !sharing.groups->open) {
        auto group = std::move(sharing.spare);
        group->reduction = access.reduction;
        group->number = ++last_group_;
        group->older = std::move(sharing.groups);
        sharing.groups = std::move(group);
    }
    access.group = sharing.groups->number;
    ++sharing.groups->members;
}

void Graph::reduce_alone(Task& task) {
    const std::lock_guard guard(lock_);
    const auto uses = [&](Access& access) -> LastUses& { return task.sequence->domain->of(*access.data); };
    for_each<AccessMode::kRedux>(task, [&](Access& access) {
        auto& sharing = uses(access).sharing;
        if (sharing == nullptr) sharing = std::make_unique<Sharing>();
        if (sharing->spare == nullptr) sharing->spare = std::make_unique<ReduxGroup>();
    });
    for_each<AccessMode::kRedux>(task, [&](Access& access) {
        Sharing& sharing = *uses(access).sharing;
        enter_group(access, sharing);
        sharing.groups->open = false;
        access.copy = nullptr;
    });
}

void Graph::share(Domain& domain, DataState& data) {
    const std::lock_guard guard(lock_);
    auto& sharing = domain.of(data).sharing;
    if (sharing == nullptr) sharing = std::make_unique<Sharing>();
}

void Graph::forget_groups(Domain& domain, DataState& data) noexcept {
    const std::lock_guard guard(lock_);
    domain.known(data).sharing->groups.reset();
}

void Graph::start_group(Domain& domain, DataState& data, const detail::Reduction* reduction, uint32_t number,
                        uint32_t members) {
    auto group = std::make_unique<ReduxGroup>();
    group->reduction = reduction;
    group->number = number;
    group->members = members;
    group->open = false;
    const std::lock_guard guard(lock_);
    Sharing& sharing = *domain.known(data).sharing;
    group->older = std::move(sharing.groups);
    sharing.groups = std::move(group);
}

void Graph::begin_reducing(Task& task) noexcept {
    for_each<AccessMode::kRedux>(task, [](Access& access) { access.copy = nullptr; });
}

const detail::DataView& Graph::private_copy(Task& task, Access& access, const detail::Reduction& reduction,
                                            const void* neutral) {
    std::unique_ptr<PrivateCopy> copy;
    {
        const std::lock_guard guard(lock_);
        ReduxGroup& group = sharing_of(task, access).group(access.group);
        copy = std::move(group.copies);
        if (copy != nullptr) group.copies = std::move(copy->next);
    }
    if (copy == nullptr) copy = new_copy(*access.data, reduction, neutral);
    access.copy = copy.release();
    return access.copy->view;
}

void Graph::end_reducing(Task& task) {
    std::unique_lock lock(lock_);
    std::exception_ptr problem;
    for_each<AccessMode::kRedux>(task, [&](Access& access) {
        Sharing& sharing = sharing_of(task, access);
        ReduxGroup& group = sharing.group(access.group);
        if (access.copy != nullptr) {
            std::unique_ptr<PrivateCopy> copy(access.copy);
            copy->next = std::move(group.copies);
            group.copies = std::move(copy);
        }
        if (--group.members > 0 || group.combining) return;
        group.combining = true;
        while (group.copies != nullptr) {
            const auto copies = std::move(group.copies);
            lock.unlock();
            try {
                for (const PrivateCopy* copy = copies.get(); copy != nullptr; copy = copy->next.get())
                    group.reduction->combine(*access.data, copy->view);
            } catch (...) {
                problem = std::current_exception();
            }
            lock.lock();
        }
        group.combining = false;
        if (group.members == 0) sharing.drop(group);
    });
    lock.unlock();
    if (problem) std::rethrow_exception(std::move(problem));
}

const detail::DataView& detail::private_copy(const DataView& data, const Reduction& reduction,
                                             const void* neutral) {
    Task& task = *current_frame()->task;
    uint32_t index = 0;
    while (task.access(index)->data != &data) ++index;
    return task.sequence->runtime.graph.private_copy(task, *task.access(index), reduction, neutral);
}

}  // namespace heddle
