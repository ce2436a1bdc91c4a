#include "memory/server_state.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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

ServerState::ServerState() : mover_([this] { run_mover(); }) {}

ServerState::~ServerState() {
    {
        const Lock lock(mutex_);
        stopping_ = true;
    }
    moving_.notify_one();
    mover_.join();
}

ClientId ServerState::add_client() {
    const Lock lock(mutex_);
    return ++last_client_;
}

void ServerState::drop_client(ClientId client) {
    Lock lock(mutex_);
    Actions actions;
    node_.drop_client(client, actions);
    hand_over(actions, lock);
}

SegmentId ServerState::create_segment(uint64_t size, const SegmentDescription& description) {
    const SegmentKind& kind = find_segment_kind(description.kind);
    SegmentPlan plan;
    {
        const Lock lock(mutex_);
        plan.id = {++last_id_};
    }
    plan.self = rank();
    plan.part_sizes = {size};
    plan.options = description.options;
    std::shared_ptr<Segment> segment = kind.create(plan);
    const Lock lock(mutex_);
    node_.atlas().add_segment(plan.id, plan.part_sizes);
    if (std::byte* const part = segment->address()) node_.caching().add_part(plan.id, part);
    segments_.emplace(plan.id, std::move(segment));
    return plan.id;
}

void ServerState::delete_segment(SegmentId id) {
    std::shared_ptr<Segment> last;
    const Lock lock(mutex_);
    node_.atlas().remove_segment(id);
    node_.caching().remove_part(id);
    last = std::move(segments_.extract(id).mapped());
}

DataId ServerState::allocate(uint64_t size, SegmentId segment, const DataDescription& description) {
    const Distribution distribution = find_distribution(description.distribution);
    const Lock lock(mutex_);
    const DataId id{++last_id_};
    node_.atlas().allocate(id, size, segment, distribution);
    return id;
}

void ServerState::free(DataId data) {
    const Lock lock(mutex_);
    node_.free(data);
}

CacheId ServerState::create_cache(uint64_t size) {
    auto payload = std::make_unique<MemoryRegion>(size);
    const Lock lock(mutex_);
    const CacheId id{++last_id_};
    node_.caching().add_cache(id, size, payload->data());
    payloads_.emplace(id, std::move(payload));
    return id;
}

void ServerState::delete_cache(CacheId cache) {
    Lock lock(mutex_);
    Actions actions;
    node_.remove_cache(cache, actions);
    const std::unique_ptr<MemoryRegion> last = std::move(payloads_.extract(cache).mapped());
    hand_over(actions, lock);
}

CacheStatistics ServerState::statistics(CacheId cache) {
    const Lock lock(mutex_);
    return node_.caching().statistics(cache);
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

void ServerState::execute(ClientId client, const Operation& operation,
                          const std::shared_ptr<OperationState>& state) {
    Lock lock(mutex_);
    Actions actions;
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
    for (size_t i = 0; i < transfers.size(); ++i) node_.transferred(transfers[i].access, errors[i], actions);
}

void ServerState::hand_over(Actions& actions, Lock& lock) {
    if (!actions.transfers.empty()) {
        std::ranges::move(std::exchange(actions.transfers, {}), std::back_inserter(to_move_));
        moving_.notify_one();
    }
    if (actions.completions.empty()) return;
    std::vector<std::shared_ptr<OperationState>> told;
    for (Completion& completion : std::exchange(actions.completions, {})) {
        const auto ended = pending_.extract(completion.ticket);
        if (!ended.empty() && ended.mapped()->end(std::move(completion.result)))
            told.push_back(ended.mapped());
    }
    if (told.empty()) return;
    lock.unlock();
    for (const auto& state : told) state->tell();
    lock.lock();
}

void ServerState::run_mover() {
    Lock lock(mutex_);
    while (true) {
        moving_.wait(lock, [&] { return stopping_ || !to_move_.empty(); });
        if (to_move_.empty()) return;
        Actions actions;
        carry_out(std::exchange(to_move_, {}), actions, lock);
        hand_over(actions, lock);
    }
}

}  // namespace heddle::memory
