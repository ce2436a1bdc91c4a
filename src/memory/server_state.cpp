#include "memory/server_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/signals_blocked.hpp"

namespace heddle::memory {
namespace {

std::string move_bytes(const Transfer& transfer,
                       const std::map<SegmentId, std::shared_ptr<Segment>>& segments) {
    try {
        std::byte* copy = transfer.copy;
        for (const Transfer::Part& part : transfer.parts) {
            switch (transfer.direction) {
                case Transfer::Direction::kFromSegment:
                    segments.at(part.segment)->read(part.rank, part.part_offset, part.memory, part.size);
                    break;
                case Transfer::Direction::kToSegment:
                    segments.at(part.segment)->write(part.rank, part.part_offset, part.memory, part.size);
                    break;
                case Transfer::Direction::kWithinCache:
                    std::memcpy(copy, part.memory, part.size);
                    copy += part.size;
                    break;
            }
        }
        return {};
    } catch (const std::exception& error) {
        return error.what();
    }
}

}  // namespace

ServerState::ServerState(const ServerOptions& options, std::unique_ptr<Transport> transport)
    : ranks_(options.ranks), node_(options.rank), mesh_(std::move(transport)) {
    if (options.ranks == 0 || options.rank >= options.ranks)
        throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no rank {} of {}: ranks count from 0",
                                                             options.rank, options.ranks));
    if (options.rank == 0) sequencer_.emplace(options.ranks);
    if (options.ranks > 1 && !mesh_) {
        const auto patience = std::chrono::duration<double>(options.patience_s);
        mesh_ = std::make_unique<Mesh>(options.rank, options.ranks, options.folder,
                                       std::chrono::duration_cast<Nanoseconds>(patience));
    }
    {
        const SignalsBlocked blocked;
        mover_ = std::thread([this] { run_mover(); });
    }
    if (mesh_) mesh_->start(*this);
}

ServerState::~ServerState() {
    if (mesh_) mesh_->stop();
    {
        const Lock lock(mutex_);
        stopping_ = true;
    }
    for_mover_.notify_one();
    mover_.join();
}

ClientId ServerState::add_client() {
    const Lock lock(mutex_);
    return ++last_client_;
}

void ServerState::drop_client(ClientId client, bool died) {
    Lock lock(mutex_);
    Actions actions;
    node_.drop_client(client, actions, died);
    hand_over(actions, lock);
}

void ServerState::register_reader(ClientId client, const GlobalRange& global, bool reads) {
    const Lock lock(mutex_);
    node_.caching().register_reader(client, global, reads);
}

Counters ServerState::counters() {
    const Lock lock(mutex_);
    Counters all;
    all.rank = rank();
    all.caches = node_.caching().statistics();
    traffic_.report(all);
    return all;
}

OperationResult ServerState::execute_sync(ClientId client, const Operation& operation) {
    Lock lock(mutex_);
    Actions actions;
    const Ticket ticket = ++last_ticket_;
    std::optional<OperationResult> result = node_.start(client, ticket, operation, actions);
    if (!result) return wait_for(ticket, actions, lock);
    if (!actions.empty()) hand_over(actions, lock);
    return std::move(*result);
}

OperationResult ServerState::wait_for(Ticket ticket, Actions& actions, Lock& lock) {
    const auto state = std::make_shared<OperationState>();
    pending_.emplace(ticket, state);
    // What there is to move now is for this operation; what follows from its end is for others.
    if (!actions.transfers.empty()) carry_out(std::exchange(actions.transfers, {}), actions, lock);
    hand_over(actions, lock);
    if (!state->done()) {
        state->announce_wait();
        lock.unlock();
        state->block();
    }
    return state->take();
}

void ServerState::begin(ClientId client, const Operation& operation,
                        const std::shared_ptr<OperationState>& state, Actions& actions) {
    const Ticket ticket = ++last_ticket_;
    state->ticket = ticket;
    pending_.emplace(ticket, state);
    try {
        if (std::optional<OperationResult> result = node_.start(client, ticket, operation, actions))
            actions.completions.push_back({ticket, std::move(*result)});
    } catch (const MemoryError& error) {
        actions.completions.push_back({ticket, error});
    } catch (...) {
        pending_.erase(ticket);
        throw;
    }
}

void ServerState::execute(ClientId client, const Operation& operation,
                          const std::shared_ptr<OperationState>& state) {
    Lock lock(mutex_);
    Actions actions;
    begin(client, operation, state, actions);
    hand_over(actions, lock);
}

void ServerState::execute_here(ClientId client, const std::vector<Operation>& operations,
                               const std::vector<std::shared_ptr<OperationState>>& states) {
    Lock lock(mutex_);
    Actions actions;
    for (size_t i = 0; i < operations.size(); ++i) begin(client, operations[i], states[i], actions);
    if (!actions.transfers.empty()) carry_out(std::exchange(actions.transfers, {}), actions, lock);
    hand_over(actions, lock);
}

bool ServerState::is_done(const OperationState& state) {
    const Lock lock(mutex_);
    return state.done();
}

void ServerState::wait(OperationState& state) {
    Lock lock(mutex_);
    if (state.done()) return;
    state.announce_wait();
    lock.unlock();
    state.block();
}

void ServerState::give_up(const std::vector<std::shared_ptr<OperationState>>& states) {
    Lock lock(mutex_);
    Actions actions;
    for (const auto& state : states) {
        if (state->done() || !node_.give_up(state->ticket, actions)) continue;
        actions.completions.push_back(
            {state->ticket,
             MemoryError(MemoryErrorCode::kCancelled, "another operation of its bunch has failed")});
    }
    hand_over(actions, lock);
}

void ServerState::put_memory(ClientId client, std::span<const std::byte> content, DataId data) {
    Lock lock(mutex_);
    const LocalRange source = node_.caching().hold_memory(client, content.data(), content.size());
    Actions actions;
    const Ticket ticket = ++last_ticket_;
    (void)node_.start(client, ticket, op::Put{source, {data, {0, content.size()}}, {}, true}, actions);
    (void)wait_for(ticket, actions, lock);
}

void ServerState::carry_out(std::vector<Transfer> transfers, Actions& actions, Lock& lock) {
    std::map<SegmentId, std::shared_ptr<Segment>> used;
    for (const Transfer& transfer : transfers)
        for (const Transfer::Part& part : transfer.parts)
            if (transfer.direction != Transfer::Direction::kWithinCache)
                used.emplace(part.segment, segments_.at(part.segment));
    lock.unlock();
    std::vector<std::string> errors;
    for (const Transfer& transfer : transfers) errors.push_back(move_bytes(transfer, used));
    lock.lock();
    for (size_t i = 0; i < transfers.size(); ++i) {
        if (errors[i].empty()) traffic_.count(transfers[i]);
        node_.transferred(transfers[i].access, errors[i], actions);
    }
}

std::vector<std::shared_ptr<OperationState>> ServerState::end_operations(Actions& actions) {
    std::vector<std::shared_ptr<OperationState>> told;
    for (Completion& completion : std::exchange(actions.completions, {})) {
        const auto ended = pending_.extract(completion.ticket);
        if (ended.empty()) continue;
        auto outcome = std::visit([](auto& result) { return OperationState::Outcome(std::move(result)); },
                                  completion.result);
        if (ended.mapped()->end(std::move(outcome))) told.push_back(ended.mapped());
    }
    return told;
}

void ServerState::leave_to_mover(Actions& actions) {
    if (!going_.empty()) remove_unused_caches(actions);
    for (const Message& message : std::exchange(actions.messages, {})) send(message.to, message);
    std::ranges::move(std::exchange(actions.transfers, {}), std::back_inserter(to_move_));
    std::ranges::move(end_operations(actions), std::back_inserter(to_tell_));
    for_mover_.notify_one();
}

void ServerState::hand_over(Actions& actions, Lock& lock) {
    if (!going_.empty()) remove_unused_caches(actions);
    for (const Message& message : std::exchange(actions.messages, {})) send(message.to, message);
    if (!actions.transfers.empty()) {
        std::ranges::move(std::exchange(actions.transfers, {}), std::back_inserter(to_move_));
        for_mover_.notify_one();
    }
    if (actions.completions.empty()) return;
    const std::vector<std::shared_ptr<OperationState>> told = end_operations(actions);
    if (told.empty()) return;
    lock.unlock();
    for (const auto& state : told) state->tell();
    lock.lock();
}

void ServerState::run_mover() {
    Lock lock(mutex_);
    while (true) {
        for_mover_.wait(lock, [&] {
            return stopping_ || !to_move_.empty() || !to_apply_.empty() || !to_tell_.empty() ||
                   !to_answer_.empty();
        });
        const auto commands = std::exchange(to_apply_, {});
        const auto told = std::exchange(to_tell_, {});
        const auto answered = std::exchange(to_answer_, {});
        if (to_move_.empty() && commands.empty() && told.empty() && answered.empty()) return;
        Actions actions;
        carry_out(std::exchange(to_move_, {}), actions, lock);
        hand_over(actions, lock);
        lock.unlock();
        for (const auto& state : told) state->tell();
        for (const auto& question : answered) question->answered.signal();
        for (const auto& [number, command] : commands) {
            ChangeApplied applied{number, apply(command)};
            lock.lock();
            send(0, std::move(applied));
            lock.unlock();
        }
        lock.lock();
    }
}

}  // namespace heddle::memory
