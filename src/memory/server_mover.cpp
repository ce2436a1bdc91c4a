// What follows from the steps of a ServerState: messages, transfers, and ends of operations, told by whoever
// made the step or by the mover, a thread of its own.
#include <algorithm>
#include <utility>

#include "memory/server_state.hpp"

namespace heddle::memory {
namespace {

/// Of one packet.
constexpr size_t kMostMessages = 256;

}  // namespace

void ServerState::end_mover() {
    {
        const Lock lock(mutex_);
        stopping_ = true;
    }
    for_mover_.notify_one();
    mover_.join();
}

std::vector<std::shared_ptr<OperationState>> ServerState::end_operations(Actions& actions) {
    std::vector<std::shared_ptr<OperationState>> told;
    trace_notes(actions);
    for (Completion& completion : actions.completions) {
        if (trace_) trace_->ended(completion.ticket);
        const auto own = std::ranges::find(own_moves_, completion.ticket, &OwnMove::ticket);
        if (own != own_moves_.end()) {
            (*own)->outcome = std::move(completion.result);
            continue;
        }
        const auto ended = pending_.find(completion.ticket);
        if (ended == pending_.end()) continue;
        const std::shared_ptr<OperationState> state = std::move(ended->second);
        pending_.erase(ended);
        if (state->end(std::move(completion.result))) told.push_back(state);
    }
    actions.completions.clear();
    if (mover_waits_) for_mover_.notify_one();
    return told;
}

void ServerState::send_messages(std::vector<Message>& messages) {
    if (messages.empty()) return;
    std::ranges::stable_sort(messages, {}, &Message::to);
    const std::span<const Message> all(messages);
    for (size_t from = 0, to = 0; from < all.size(); from = to) {
        while (to < all.size() && all[to].to == all[from].to && to - from < kMostMessages) ++to;
        mesh_->send(all[from].to, packet_of(all.subspan(from, to - from)));
    }
    messages.clear();
}

void ServerState::leave(Actions& actions, bool wakes) {
    if (!going_.empty()) remove_unused_caches(actions);
    send_messages(actions.messages);
    to_move_.insert(to_move_.end(), actions.transfers.begin(), actions.transfers.end());
    actions.transfers.clear();
    for (auto& state : end_operations(actions)) {
        if (wakes && !state->when_done)
            to_wake_.push_back(std::move(state));
        else
            to_tell_.push_back(std::move(state));
    }
    if (!to_move_.empty() || !to_tell_.empty()) for_mover_.notify_one();
}

void ServerState::leave_to_mover(Actions& actions) {
    leave(actions, false);
}

void ServerState::leave_to_waiters(Actions& actions) {
    std::erase_if(actions.transfers, [&](const Transfer& transfer) {
        const auto waiting = pending_.find(transfer.ticket);
        if (waiting == pending_.end() || !waiting->second->give(transfer)) return false;
        to_wake_.push_back(waiting->second);
        return true;
    });
    leave(actions, true);
}

void ServerState::hand_over(Actions& actions, Lock& lock, Functions called) {
    trace_notes(actions);
    if (!going_.empty()) remove_unused_caches(actions);
    send_messages(actions.messages);
    if (!actions.transfers.empty()) {
        to_move_.insert(to_move_.end(), actions.transfers.begin(), actions.transfers.end());
        actions.transfers.clear();
        for_mover_.notify_one();
    }
    if (actions.completions.empty()) return;
    std::vector<std::shared_ptr<OperationState>> told = end_operations(actions);
    // A function may wait for what others do who are told here: it is called last, and one alone.
    // Clang 14 makes nothing of std::ranges::stable_partition here.
    const auto functions = std::stable_partition(
        told.begin(), told.end(), [](const auto& state) { return state->when_done == nullptr; });
    const auto count = told.end() - functions;
    const bool calls_all =
        called == Functions::kHere || (called == Functions::kOneHere && count == 1 && !is_mover());
    if (count > 0 && !calls_all) {
        to_tell_.insert(to_tell_.end(), functions, told.end());
        told.erase(functions, told.end());
        for_mover_.notify_one();
    }
    if (told.empty()) return;
    lock.unlock();
    for (const auto& state : told) state->tell();
    lock.lock();
}

void ServerState::work(Lock& lock) {
    const auto take_first = [](auto& list) {
        auto first = std::move(list.front());
        list.pop_front();
        return first;
    };
    if (!to_move_.empty()) {
        const Step step(*this, lock);
        step.lists().moving.swap(to_move_);
        carry_out(step.lists(), lock);
        hand_over(step.actions(), lock);
    }
    if (!to_tell_.empty()) {
        const std::shared_ptr<OperationState> state = take_first(to_tell_);
        lock.unlock();
        state->tell();
        lock.lock();
    }
    if (!to_answer_.empty()) take_first(to_answer_)->answered.signal();
    if (!to_apply_.empty()) {
        const auto [number, command] = take_first(to_apply_);
        lock.unlock();
        ChangeApplied done{number, apply(command)};
        lock.lock();
        applied(std::move(done), command);
    }
}

void ServerState::wait_for_answer(Question& question) {
    if (question.is_answered.load(std::memory_order_acquire)) return;
    if (!is_mover()) return question.answered.block_until_signalled();
    Lock lock(mutex_);
    work_until_done([&] { return question.is_answered.load(); }, lock);
}

}  // namespace heddle::memory
