#include "tasks/lane.hpp"

#include <fmt/format.h>

#include <vector>

#include "heddle/error.hpp"

namespace heddle {
namespace {

/// The lanes of one thread, in all runtimes. Those of runtimes that are gone make room for new ones.
class LanesOfThread {
  public:
    ~LanesOfThread() {
        for (const Entry& entry : entries_)
            if (const auto table = entry.table.lock()) table->release(*entry.lane);
    }
    [[nodiscard]] Lane* find(const LaneTable* table) const noexcept {
        for (const Entry& entry : entries_)
            if (entry.key == table && !entry.table.expired()) return entry.lane;
        return nullptr;
    }
    Lane& add(const std::shared_ptr<LaneTable>& table) {
        std::erase_if(entries_, [](const Entry& entry) { return entry.table.expired(); });
        entries_.reserve(entries_.size() + 1);
        entries_.push_back({table.get(), table, &table->acquire()});
        return *entries_.back().lane;
    }

  private:
    struct Entry {
        const LaneTable* key;
        std::weak_ptr<LaneTable> table;
        Lane* lane;
    };
    std::vector<Entry> entries_;
};

/// The one that was asked for last: found without a look at the list. A table's memory is not used again
/// while this thread's entry holds it weakly, so its address is enough of a name.
thread_local struct {
    const LaneTable* table = nullptr;
    Lane* lane = nullptr;
} latest [[gnu::tls_model("initial-exec")]];
thread_local LanesOfThread of_thread;

/// Not inlined, so that who is found at once saves no registers for it.
[[gnu::noinline]] Lane& look_up(const std::shared_ptr<LaneTable>& table) {
    Lane* lane = of_thread.find(table.get());
    if (lane == nullptr) lane = &of_thread.add(table);
    latest = {table.get(), lane};
    return *lane;
}

}  // namespace

Lane& LaneTable::acquire() {
    const std::lock_guard guard(mutex_);
    for (uint32_t i = 0; i < size(); ++i)
        if (!taken_[i]) {
            taken_[i] = true;
            return *lanes_[i];
        }
    const uint32_t index = size();
    if (index == kMost)
        throw Error(ErrorCode::kLimit,
                    fmt::format("{} threads use this runtime already, and no more can", kMost));
    lanes_[index] = std::make_unique<Lane>();
    lanes_[index]->index = index;
    taken_[index] = true;
    size_.store(index + 1, std::memory_order_release);
    return *lanes_[index];
}

void LaneTable::release(Lane& lane) noexcept {
    const std::lock_guard guard(mutex_);
    if (runtime_ != nullptr) leave_(*runtime_, lane);
    taken_[lane.index] = false;
}

void LaneTable::close() noexcept {
    const std::lock_guard guard(mutex_);
    runtime_ = nullptr;
}

Lane* lane_if_any(const LaneTable& table) noexcept {
    if (latest.table == &table) return latest.lane;
    return of_thread.find(&table);
}

Lane& lane_of(const std::shared_ptr<LaneTable>& table) {
    return latest.table == table.get() ? *latest.lane : look_up(table);
}

}  // namespace heddle
