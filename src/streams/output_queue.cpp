#include "streams/output_queue.hpp"

#include "streams/withdraw.hpp"

namespace heddle::streams {

void OutputQueue::attach(Pressure& pressure) {
    pressure_ = &pressure;
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
    pressure_->wait(gauge_, [this] {
        const std::lock_guard guard(mutex_);
        return back_.size() >= gauge_.bound.load(std::memory_order_relaxed);
    });
}

std::optional<Record> OutputQueue::take_first(BlockCondition* waiter) {
    std::optional<Record> record;
    bool emptied = false;
    {
        const std::lock_guard guard(front_mutex_);
        if (front_.empty()) {
            const std::lock_guard inner(mutex_);
            std::swap(front_, back_);
            emptied = true;
            if (front_.empty() && waiter != nullptr) waiting_.push_back(waiter);
        }
        if (!front_.empty()) {
            record = std::move(front_.front());
            front_.pop_front();
        }
    }
    if (emptied) pressure_->emptied(gauge_);
    return record;
}

bool OutputQueue::withdraw(BlockCondition& waiter) {
    const std::lock_guard guard(mutex_);
    return std::erase(waiting_, &waiter) > 0;
}

std::optional<Record> OutputQueue::try_pull() {
    pulling();
    return take_first(nullptr);
}

std::optional<Record> OutputQueue::pull(const std::function<bool()>& ended) {
    pulling();
    while (true) {
        // Asked first: what came before it ended is there.
        const bool is_over = ended();
        BlockCondition arrived;
        std::optional<Record> record = take_first(is_over ? nullptr : &arrived);
        if (record || is_over) return record;
        // Who ends it wakes those that he sees: it may have ended before he could see this one.
        if (ended() && withdraw(arrived)) continue;
        block_or_withdraw(arrived, [&] { return withdraw(arrived); });
    }
}

void OutputQueue::pulling() {
    const uintptr_t own = own_number();
    if (puller_.load(std::memory_order_relaxed) == own) return;
    puller_.store(own, std::memory_order_relaxed);
    gauge_.outside.store(pusher_.load(std::memory_order_relaxed) != own ? own : 0, std::memory_order_relaxed);
}

void OutputQueue::pushing(uintptr_t own) {
    const uintptr_t puller = puller_.load(std::memory_order_relaxed);
    if (pusher_.load(std::memory_order_relaxed) == own) return;
    pusher_.store(own, std::memory_order_relaxed);
    gauge_.outside.store(puller != own ? puller : 0, std::memory_order_relaxed);
}

void OutputQueue::wake_all() {
    const std::lock_guard guard(mutex_);
    for (BlockCondition* one : waiting_) one->signal();
    waiting_.clear();
}

void OutputQueue::grow_freely() {
    gauge_.outside.store(0, std::memory_order_relaxed);
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
    pressure_->emptied(gauge_);
}

}  // namespace heddle::streams
