// Sharing: what tasks that update a datum side by side have of it in one domain: turns and private copies.
//
// The graph's, under its lock. Tasks that commute() take a turn with each of their data, one after the other
// in the order of addresses, and run when they have all; who has to wait does so in the list of a datum,
// without a thread. Who ends gives each turn to the first that waits for it, so a turn costs the same however
// many wait. (To wait for all of them at once would let more run side by side, but then each end would have
// to look at everybody who waits.)
//
// Tasks that redux() form groups, between two uses of another kind. Each takes a private copy while it runs
// and leaves it for the next one; who ends when no other of the group is left combines them all into the
// data. What follows the group follows all of its tasks, that one too. So there are as many copies as tasks
// that ran at once, and whoever has waited for all tasks of a group finds the data complete.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "tasks/elements.hpp"
#include "tasks/task.hpp"

namespace heddle {

struct PrivateCopy {
    PrivateCopy() = default;
    /// One after the other: there are as many as tasks that were paused with one, and stacks are small.
    ~PrivateCopy() {
        while (next != nullptr) next = std::move(next->next);
    }
    PrivateCopy(const PrivateCopy&) = delete;
    PrivateCopy& operator=(const PrivateCopy&) = delete;

    detail::DataView view;
    Elements elements;
    std::unique_ptr<PrivateCopy> next;
};

struct ReduxGroup {
    const detail::Reduction* reduction = nullptr;
    uint32_t number = 0;                  ///< names it among those of a datum
    uint32_t members = 0;                 ///< tasks inserted and not ended
    bool open = true;                     ///< the next task that reduces may join it
    bool combining = false;               ///< a task that has ended does
    std::unique_ptr<PrivateCopy> copies;  ///< those that no task uses right now
    std::unique_ptr<ReduxGroup> older;
};

struct Sharing {
    bool taken = false;                              ///< a task that commutes has its turn
    Task *first_waiting = nullptr, *last = nullptr;  ///< for it, best first, by Task::next
    std::unique_ptr<ReduxGroup> groups;              ///< newest first
    std::unique_ptr<ReduxGroup> spare;               ///< for the next one

    void wait(Task& task) noexcept;
    [[nodiscard]] Task* pop_waiting() noexcept;
    [[nodiscard]] ReduxGroup& group(uint32_t number) noexcept;
    void drop(const ReduxGroup& group) noexcept;
};

}  // namespace heddle
