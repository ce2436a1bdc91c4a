#include "streams/output_queue.hpp"

#include "tasks/frame.hpp"

namespace heddle::streams {

/// The task that runs, or the thread.
uintptr_t own_number() {
    if (const TaskFrame* const frame = current_frame()) return reinterpret_cast<uintptr_t>(frame->task);
    static thread_local char own;
    return reinterpret_cast<uintptr_t>(&own);
}

void OutputQueue::attach(Plant& plant) {
    plant_ = &plant;
    gauge_.counts = false;
}

void OutputQueue::take(Record&& record, Flow& flow) {
    bool full = false;
    {
        const std::lock_guard guard(mutex_);
        if (dropped_) return;
        back_.push_back(std::move(record));
        full = back_.size() >= gauge_.bound.load(std::memory_order_relaxed);
        if (!waiting_.empty()) {
            waiting_.back()->signal();
            waiting_.pop_back();
        }
    }
    if (!full) return;
    flow.let_go();
    flow.count();
    plant_->pressure.wait(gauge_, [this] {
        const std::lock_guard guard(mutex_);
        return back_.size() >= gauge_.bound.load(std::memory_order_relaxed);
    });
}

bool OutputQueue::take_front(std::optional<Record>& to) {
    const std::lock_guard guard(front_mutex_);
    const bool refilled = front_.empty();
    if (refilled) {
        const std::lock_guard inner(mutex_);
        std::swap(front_, back_);
    }
    if (!front_.empty()) {
        to = std::move(front_.front());
        front_.pop_front();
    }
    return refilled;
}

std::optional<Record> OutputQueue::try_pull() {
    pulling();
    std::optional<Record> record;
    if (take_front(record)) plant_->pressure.emptied(gauge_);
    return record;
}

std::optional<Record> OutputQueue::pull(const std::function<bool()>& ended) {
    while (true) {
        // Asked first: what came before it ended is there.
        const bool is_over = ended();
        std::optional<Record> record = try_pull();
        if (record || is_over) return record;
        BlockCondition arrived;
        {
            const std::lock_guard guard(mutex_);
            if (!back_.empty()) continue;
            waiting_.push_back(&arrived);
        }
        // Who ends it wakes those that he sees: it may have ended before he could see this one.
        if (ended()) {
            const std::lock_guard guard(mutex_);
            if (std::erase(waiting_, &arrived) > 0) continue;
        }
        arrived.block();
    }
}

void OutputQueue::pulling() {
    const uintptr_t own = own_number();
    if (puller_.load(std::memory_order_relaxed) == own) return;
    puller_.store(own, std::memory_order_relaxed);
    gauge_.outside.store(pusher_.load(std::memory_order_relaxed) != own, std::memory_order_relaxed);
}

void OutputQueue::pushing(uintptr_t own) {
    const uintptr_t puller = puller_.load(std::memory_order_relaxed);
    if (pusher_.load(std::memory_order_relaxed) == own) return;
    pusher_.store(own, std::memory_order_relaxed);
    gauge_.outside.store(puller != 0 && puller != own, std::memory_order_relaxed);
}

void OutputQueue::wake_all() {
    const std::lock_guard guard(mutex_);
    for (BlockCondition* one : waiting_) one->signal();
    waiting_.clear();
}

void OutputQueue::grow_freely() {
    gauge_.outside.store(false, std::memory_order_relaxed);
    puller_.store(0, std::memory_order_relaxed);
}

void OutputQueue::drop() {
    std::deque<Record> front, back;
    {
        const std::lock_guard guard(front_mutex_);
        const std::lock_guard inner(mutex_);
        dropped_ = true;
        std::swap(front, front_);
        std::swap(back, back_);
    }
    plant_->pressure.emptied(gauge_);
}

}  // namespace heddle::streams
