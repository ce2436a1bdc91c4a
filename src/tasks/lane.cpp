#include "tasks/lane.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <cstring>
#include <new>
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
    Lane& add(const std::shared_ptr<LaneTable>& table, bool to_insert) {
        std::erase_if(entries_, [](const Entry& entry) { return entry.table.expired(); });
        entries_.reserve(entries_.size() + 1);
        entries_.push_back({table.get(), table, &table->acquire(to_insert)});
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

/// Null: none yet, or again none. Not an object with a destructor: sequences that are the thread's are
/// destroyed with it, perhaps after that, and need their lanes. Those of main are never given back.
thread_local LanesOfThread* of_thread [[gnu::tls_model("initial-exec")]] = nullptr;

/// Called when the thread's objects have been destroyed.
pthread_key_t end_of_thread() {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        if (const int error = ::pthread_key_create(&made, [](void* lanes) {
                latest_lane = {};
                of_thread = nullptr;
                delete static_cast<LanesOfThread*>(lanes);
            }))
            throw Error(ErrorCode::kLimit,
                        fmt::format("cannot hear of the end of threads: {}", std::strerror(error)));
        return made;
    }();
    return key;
}

}  // namespace

thread_local constinit LatestLane latest_lane [[gnu::tls_model("initial-exec")]];

Lane& LaneTable::acquire(bool to_insert) {
    const std::lock_guard guard(mutex_);
    uint32_t index = 0;
    while (index < size() && taken_[index]) ++index;
    if (index == kMost || (to_insert && inserters_ == kMostInserters))
        throw Error(ErrorCode::kLimit, fmt::format("{} threads use this runtime already, and no more can",
                                                   to_insert ? inserters_ : kMost));
    if (index == size()) {
        lanes_[index] = std::make_unique<Lane>();
        lanes_[index]->index = index;
        size_.store(index + 1, std::memory_order_release);
    }
    Lane& lane = *lanes_[index];
    taken_[index] = true;
    lane.of_inserter = to_insert;
    inserters_ += to_insert ? 1 : 0;
    return lane;
}

void LaneTable::release(Lane& lane) noexcept {
    const std::lock_guard guard(mutex_);
    if (runtime_ != nullptr) leave_(*runtime_, lane);
    inserters_ -= lane.of_inserter ? 1 : 0;
    taken_[lane.index] = false;
}

void LaneTable::close() noexcept {
    const std::lock_guard guard(mutex_);
    runtime_ = nullptr;
}

Lane& lane_of(const std::shared_ptr<LaneTable>& table) {
    return latest_lane.table == table.get() ? *latest_lane.lane : look_up_lane(table, false);
}

Lane* look_for_lane(const LaneTable& table) noexcept {
    return of_thread == nullptr ? nullptr : of_thread->find(&table);
}

Lane& look_up_lane(const std::shared_ptr<LaneTable>& table, bool to_insert) try {
    latest_lane = {};  // its entry may go below, and with it the address's meaning
    if (of_thread == nullptr) {
        auto lanes = std::make_unique<LanesOfThread>();
        if (::pthread_setspecific(end_of_thread(), lanes.get()) != 0) throw std::bad_alloc();
        of_thread = lanes.release();
    }
    Lane* lane = of_thread->find(table.get());
    if (lane == nullptr) lane = &of_thread->add(table, to_insert);
    latest_lane = {table.get(), lane};
    return *lane;
} catch (const std::bad_alloc&) {
    if (!to_insert) throw;
    throw Error(ErrorCode::kLimit, "there is no memory for one more thread that inserts tasks");
}

}  // namespace heddle
