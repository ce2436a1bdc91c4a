#include "tasks/kept_data.hpp"

#include <exception>
#include <mutex>
#include <tuple>

#include "tasks/data_state.hpp"

namespace heddle {

void KeptData::keep(DataState& data, DataKeeper& keeper, const std::function<void()>& note) {
    {
        const std::shared_lock lock(mutex_);
        if (data.keeper == &keeper) return note();
    }
    const std::unique_lock lock(mutex_);
    DataKeeper* const before = data.keeper;
    if (before == &keeper) return note();
    if (before != nullptr) before->bring_home(data, AccessMode::kInOut);
    try {
        data_.insert(&data);
        {
            const std::lock_guard guard(keeper.keeps_mutex_);
            keeper.keeps_.emplace(&data, this);
        }
        note();
    } catch (...) {
        if (before == nullptr) data_.erase(&data);
        const std::lock_guard guard(keeper.keeps_mutex_);
        keeper.keeps_.erase(&data);
        throw;
    }
    if (before != nullptr) leave(data, *before);
    count_.store(data_.size(), std::memory_order_release);
    data.keeper = &keeper;
}

void KeptData::leave(DataState& data, DataKeeper& keeper) noexcept {
    keeper.forget(data);
    const std::lock_guard guard(keeper.keeps_mutex_);
    keeper.keeps_.erase(&data);
}

void KeptData::let_go(DataState* data, DataKeeper& keeper) noexcept {
    const std::unique_lock lock(mutex_);
    if (!data_.contains(data) || data->keeper != &keeper) return;
    try {
        keeper.bring_home(*data, AccessMode::kInOut);
    } catch (...) {
        // A device took it along, and nobody has asked for it.
    }
    leave(*data, keeper);
    data->keeper = nullptr;
    data_.erase(data);
    count_.store(data_.size(), std::memory_order_release);
}

void DataKeeper::let_all_go() noexcept {
    while (true) {
        DataState* data = nullptr;
        KeptData* asks = nullptr;
        {
            const std::lock_guard guard(keeps_mutex_);
            if (keeps_.empty()) return;
            std::tie(data, asks) = *keeps_.begin();
        }
        asks->let_go(data, *this);
    }
}

void KeptData::forget(DataState& data) noexcept {
    if (!any()) return;
    const std::unique_lock lock(mutex_);
    if (DataKeeper* const keeper = data.keeper.exchange(nullptr)) leave(data, *keeper);
    data_.erase(&data);
    count_.store(data_.size(), std::memory_order_release);
}

void KeptData::bring_home(Task& task) {
    if (task.keeps_data || (task.special & kLooksOn) != 0) return;
    for (uint32_t i = 0; i < task.accesses; ++i) bring_home(*task.access(i)->data, task.access(i)->mode);
}

void KeptData::bring_home(DataState& data, AccessMode how) {
    if (data.keeper == nullptr) return;
    const std::shared_lock lock(mutex_);
    if (DataKeeper* const keeper = data.keeper) keeper->bring_home(data, how);
}

void KeptData::bring_all_home() {
    if (!any()) return;
    std::exception_ptr failure;
    const std::shared_lock lock(mutex_);
    for (DataState* const data : data_) {
        try {
            data->keeper.load()->bring_home(*data, AccessMode::kInOut);
            data->loss_was_told = false;
        } catch (...) {
            if (failure == nullptr && !data->loss_was_told.exchange(true)) failure = std::current_exception();
        }
    }
    if (failure != nullptr) std::rethrow_exception(failure);
}

void KeptData::try_to_bring_all_home() noexcept {
    try {
        bring_all_home();
    } catch (...) {
        // Told by another wait, as the header says.
    }
}

}  // namespace heddle
