#include "tasks/failures.hpp"

#include <algorithm>
#include <new>

#include "tasks/data_state.hpp"

namespace heddle {

void Failures::mark(Task& task, uint64_t failure) noexcept {
    if ((task.special & kLooksOn) != 0) return;
    for (uint32_t i = 0; i < task.accesses; ++i)
        // Others add to the same data beside one that reduces, and may have failed.
        if (const Access& access = *task.access(i);
            access.mode != AccessMode::kIn && (access.mode != AccessMode::kRedux || failure != 0))
            access.data->failure.store(failure, std::memory_order_relaxed);
}

void Failures::healed(Task& task) noexcept {
    mark(task, 0);
}

/// Null where there is none that concerns the task.
const Failures::Failure* Failures::find(const Task& task, uint64_t id) const {
    const auto found = std::ranges::find(failures_, id, &Failure::id);
    if (found == failures_.end()) return nullptr;
    const bool is_told = found->told_before != 0 && static_cast<int32_t>(task.era - found->told_before) >= 0;
    return is_told ? nullptr : &*found;
}

uint64_t Failures::note(const SequenceState* sequence, std::exception_ptr error) {
    if (failures_.size() >= kMost)
        if (const auto told = std::ranges::find_if(failures_, &Failure::told_before); told != failures_.end())
            failures_.erase(told);
    try {
        failures_.push_back({++last_id_, sequence, std::move(error)});
    } catch (const std::bad_alloc&) {
        // One failure less is told. Where it is the first at all, the room for it was made at the start.
        return failures_.empty() ? 0 : failures_.back().id;
    }
    count_.store(failures_.size(), std::memory_order_release);
    return last_id_;
}

void Failures::failed(Task& task, std::exception_ptr error) noexcept {
    const std::lock_guard guard(mutex_);
    mark(task, note(task.sequence, std::move(error)));
}

bool Failures::cancels(Task& task, std::exception_ptr& why) noexcept {
    const std::lock_guard guard(mutex_);
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const Access& access = *task.access(i);
        if (access.mode == AccessMode::kOut) continue;
        const Failure* failure = find(task, access.data->failure.load(std::memory_order_relaxed));
        if (failure == nullptr) continue;
        why = failure->error;
        const auto own = std::ranges::find(failures_, task.sequence, &Failure::sequence);
        mark(task, own == failures_.end() ? note(task.sequence, why) : own->id);
        return true;
    }
    return false;
}

std::exception_ptr Failures::take(const SequenceState& sequence) noexcept {
    if (!any()) return nullptr;
    const std::lock_guard guard(mutex_);
    const auto first = std::ranges::find(failures_, &sequence, &Failure::sequence);
    if (first == failures_.end()) return nullptr;
    std::exception_ptr error = first->error;
    // One that was told would be 0 after 2^32 of them.
    const uint32_t now = std::max(era_.load(std::memory_order_relaxed) + 1, uint32_t{1});
    era_.store(now, std::memory_order_relaxed);
    for (Failure& failure : failures_)
        if (failure.sequence == &sequence) {
            failure.sequence = nullptr;
            failure.told_before = now;
        }
    return error;
}

void Failures::forget_told() noexcept {
    if (!any()) return;
    const std::lock_guard guard(mutex_);
    std::erase_if(failures_, [](const Failure& failure) { return failure.told_before != 0; });
    count_.store(failures_.size(), std::memory_order_release);
}

}  // namespace heddle
