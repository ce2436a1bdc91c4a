#include "memory/server_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "heddle/in_task.hpp"
#include "memory/service_thread.hpp"

namespace heddle::memory {
namespace {

using UsedSegments = std::vector<std::pair<SegmentId, std::shared_ptr<Segment>>>;

Segment* find(const UsedSegments& segments, SegmentId id) {
    const auto found = std::ranges::find(segments, id, &UsedSegments::value_type::first);
    return found == segments.end() ? nullptr : found->second.get();
}

/// What went wrong, or nothing.
std::string move_bytes(const Transfer& transfer, const UsedSegments& segments) {
    try {
        std::byte* copy = transfer.copy;
        if (transfer.direction == Transfer::Direction::kToSegment && transfer.parts.size() > 1)
            for (const Transfer::Part& part : transfer.parts)
                find(segments, part.segment)->prepare_write(part.rank, part.part_offset, part.size);
        for (const Transfer::Part& part : transfer.parts) {
            switch (transfer.direction) {
                case Transfer::Direction::kFromSegment:
                    find(segments, part.segment)->read(part.rank, part.part_offset, part.memory, part.size);
                    break;
                case Transfer::Direction::kToSegment:
                    find(segments, part.segment)->write(part.rank, part.part_offset, part.memory, part.size);
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

constexpr size_t kMostSpare = 8;
constexpr Rank kMostRanks = 1 << 16;
/// Of what a client that goes has, before others have their turn, and for how long: a lock that is given away
/// and taken again at once is nobody else's.
constexpr size_t kDroppedAtOnce = 1024;
constexpr std::chrono::microseconds kOthersTurn(50);

}  // namespace

ServerState::Step::Step(ServerState& server, Lock& lock) : server_(server), lock_(lock) {
    if (server_.spare_lists_.empty()) {
        lists_ = std::make_unique<Lists>();
        return;
    }
    lists_ = std::move(server_.spare_lists_.back());
    server_.spare_lists_.pop_back();
}

ServerState::Step::~Step() {
    if (!lock_.owns_lock() || server_.spare_lists_.size() >= kMostSpare) return;
    lists_->actions.clear();
    lists_->forget_moved();
    server_.spare_lists_.push_back(std::move(lists_));
}

ServerState::ServerState(const ServerOptions& options, std::unique_ptr<Transport> transport)
    : ranks_(options.ranks), node_(options.rank), mesh_(std::move(transport)) {
    if (options.ranks == 0 || options.rank >= options.ranks)
        throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no rank {} of {}: ranks count from 0",
                                                             options.rank, options.ranks));
    if (options.ranks > kMostRanks)
        throw Error(ErrorCode::kLimit,
                    fmt::format("there can be {} ranks, and {} are asked for", kMostRanks, options.ranks));
    spare_lists_.reserve(kMostSpare);
    trace_ = OperationTrace::open();
    if (trace_) node_.caching().take_notes();
    if (options.rank == 0) sequencer_.emplace(options.ranks);
    if (options.ranks > 1 && !mesh_) {
        constexpr double kMostSeconds = 1e6;
        const auto patience = std::chrono::duration<double>(
            options.patience_s > 0 ? std::min(options.patience_s, kMostSeconds) : 0);
        mesh_ = std::make_unique<Mesh>(options.rank, options.ranks, options.folder,
                                       std::chrono::duration_cast<Nanoseconds>(patience));
    }
    mover_ = service_thread([this] {
        Lock lock(mutex_);
        work_until([] { return false; }, lock);
    });
    try {
        if (mesh_) mesh_->start(*this);
    } catch (...) {
        end_mover();
        throw;
    }
}

ServerState::~ServerState() {
    if (mesh_) mesh_->stop();
    end_mover();
}

ClientId ServerState::add_client(const std::string& name) {
    const Lock lock(mutex_);
    if (trace_) trace_->joined(last_client_ + 1, name);
    return ++last_client_;
}

void ServerState::drop_client(ClientId client, bool died, Functions called) {
    Lock lock(mutex_);
    trace_step();
    LeavingClient leaving{client, died};
    for (bool is_more = true; is_more;) {
        Actions actions;
        is_more = node_.drop_client(leaving, kDroppedAtOnce, actions);
        hand_over(actions, lock, called);
        if (!is_more) break;
        lock.unlock();
        std::this_thread::sleep_for(kOthersTurn);
        lock.lock();
    }
    if (trace_) trace_->left(client);
}

void ServerState::register_reader(ClientId client, const GlobalRange& global, bool reads) {
    const Lock lock(mutex_);
    node_.caching().register_reader(client, global, reads);
}

size_t ServerState::registrations(ClientId client) {
    const Lock lock(mutex_);
    return node_.caching().registrations(client);
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
    const Ticket ticket = ++last_ticket_;
    trace_step();
    // Mostly nothing follows, and the lists of the next step stay where they are.
    if (spare_lists_.empty()) spare_lists_.push_back(std::make_unique<Lists>());
    Actions& actions = spare_lists_.back()->actions;
    std::optional<OperationResult> result;
    try {
        result = node_.start(client, ticket, operation, actions);
    } catch (...) {
        const Step step(*this, lock);
        hand_over(step.actions(), lock);
        throw;
    }
    if (result && actions.empty() && !trace_) return std::move(*result);
    const Step step(*this, lock);
    if (trace_) trace_start(client, ticket, operation, result.has_value(), step.actions());
    if (!result) return wait_for(ticket, step.lists(), lock);
    if (!step.actions().empty()) hand_over(step.actions(), lock);
    return std::move(*result);
}

bool ServerState::may_look() const noexcept {
    return !in_task() && !is_mover();
}

OperationResult ServerState::wait_for(Ticket ticket, Lists& lists, Lock& lock) {
    bool asks = !lists.actions.messages.empty();
    if (!lists.actions.transfers.empty()) {
        OwnMove own(*this, ticket);
        // What there is to move now is for this operation; what follows from its end is for others.
        carry_out_here(lists, lock);
        asks |= !lists.actions.messages.empty();
        // Functions of bunches may wait, for what this thread would have to receive.
        hand_over(lists.actions, lock, Functions::kByMover);
        if (own.outcome) return result_of(std::move(*own.outcome));
    }
    std::shared_ptr<OperationState> state;
    if (spare_states_.empty()) {
        state = std::make_shared<OperationState>();
    } else {
        state = std::move(spare_states_.back());
        spare_states_.pop_back();
    }
    pending_.emplace(ticket, state);
    // A thread is there as soon as it is told; a task when a worker has time, for which nobody waits.
    const bool is_thread = !in_task();
    Look look(asks && may_look() ? mesh_.get() : nullptr);
    hand_over(lists.actions, lock, Functions::kByMover);
    if (is_mover()) work_until_done([&] { return state->done(); }, lock);
    while (!state->done()) {
        state->announce_wait(is_thread);
        lock.unlock();
        look.until([&] { return state->ready(); });
        state->block();
        lock.lock();
        if (const std::optional<Transfer> given = state->take_given()) {
            lists.moving.push_back(*given);
            carry_out(lists, lock);
            hand_over(lists.actions, lock);
        }
    }
    OperationResult result = state->take();
    if (state.use_count() == 1 && spare_states_.size() < kMostSpare) {
        state->renew();
        spare_states_.push_back(std::move(state));
    }
    return result;
}

void ServerState::begin(ClientId client, const Operation& operation,
                        const std::shared_ptr<OperationState>& state, Actions& actions) {
    const Ticket ticket = ++last_ticket_;
    state->ticket = ticket;
    const auto ends = [&](Completion completion) {
        pending_.emplace(ticket, state);
        actions.completions.push_back(std::move(completion));
    };
    trace_step();
    try {
        std::optional<OperationResult> result = node_.start(client, ticket, operation, actions);
        if (trace_) trace_start(client, ticket, operation, result.has_value(), actions);
        if (!result)
            pending_.emplace(ticket, state);
        else if (state->when_done)
            ends({ticket, std::move(*result)});
        else
            (void)state->end(std::move(*result));  // nobody can wait for it yet
    } catch (const MemoryError& error) {
        ends({ticket, error});
    } catch (...) {
        ends({ticket, std::current_exception()});
    }
}

void ServerState::execute(ClientId client, const Operation& operation,
                          const std::shared_ptr<OperationState>& state) {
    Lock lock(mutex_);
    const Step step(*this, lock);
    begin(client, operation, state, step.actions());
    if (!step.actions().empty()) hand_over(step.actions(), lock);
}

void ServerState::execute_here(ClientId client, const std::vector<Operation>& operations,
                               const std::vector<std::shared_ptr<OperationState>>& states) {
    Lock lock(mutex_);
    const Step step(*this, lock);
    for (size_t i = 0; i < operations.size(); ++i) begin(client, operations[i], states[i], step.actions());
    carry_out_here(step.lists(), lock);
    hand_over(step.actions(), lock);
}

bool ServerState::is_done(const OperationState& state) {
    return state.done();
}

void ServerState::wait(OperationState& state) {
    if (state.done()) return;
    Lock lock(mutex_);
    if (is_mover()) return work_until_done([&] { return state.done(); }, lock);
    if (state.done()) return;
    state.announce_wait();
    lock.unlock();
    state.block();
}

void ServerState::give_up(ClientId client, const std::vector<std::shared_ptr<OperationState>>& states) {
    Lock lock(mutex_);
    Actions actions;
    for (const auto& state : states)
        if (!state->done()) node_.give_up(client, state->ticket, actions);
    hand_over(actions, lock);
}

void ServerState::put_memory(ClientId client, std::span<const std::byte> content, DataId data) {
    Lock lock(mutex_);
    const LocalRange source = node_.caching().hold_memory(client, content.data(), content.size());
    const Step step(*this, lock);
    const Ticket ticket = ++last_ticket_;
    const op::Put fill{source, {data, {0, content.size()}}, {}, true};
    trace_step();
    try {
        (void)node_.start(client, ticket, fill, step.actions());
        if (trace_) trace_start(client, ticket, fill, false, step.actions());
        (void)wait_for(ticket, step.lists(), lock);
    } catch (...) {
        node_.caching().drop_memory(source);
        throw;
    }
}

void ServerState::carry_out_here(Lists& lists, Lock& lock) {
    if (lists.actions.transfers.empty()) return;
    lists.moving.swap(lists.actions.transfers);
    carry_out(lists, lock);
}

void ServerState::carry_out(Lists& lists, Lock& lock) {
    for (const Transfer& transfer : lists.moving)
        for (const Transfer::Part& part : transfer.parts)
            if (transfer.direction != Transfer::Direction::kWithinCache &&
                find(lists.used, part.segment) == nullptr)
                lists.used.emplace_back(part.segment, segments_.at(part.segment));
    // What was said before others come to say something arrives before that.
    send_messages(lists.actions.messages);
    lists.errors.reserve(lists.moving.size());
    lists.times.reserve(lists.moving.size());
    lock.unlock();
    for (const Transfer& transfer : lists.moving) {
        const int64_t begin_ns = trace_ ? OperationTrace::now_ns() : 0;
        lists.errors.push_back(move_bytes(transfer, lists.used));
        if (trace_) lists.times.emplace_back(begin_ns, OperationTrace::now_ns());
    }
    lock.lock();
    if (trace_) trace_moved(lists);
    for (size_t i = 0; i < lists.moving.size(); ++i) {
        if (lists.errors[i].empty()) traffic_.count(lists.moving[i]);
        node_.transferred(lists.moving[i].access, lists.errors[i], lists.actions);
    }
    lists.forget_moved();
    tell_freed();
}

void ServerState::trace_start(ClientId client, Ticket ticket, const Operation& operation, bool has_ended,
                              Actions& actions) noexcept {
    if (has_ended && actions.notes.empty()) return;
    trace_->began(client, ticket, operation);
    trace_notes(actions);
    if (has_ended) trace_->ended(ticket);
}

void ServerState::trace_notes(Actions& actions) noexcept {
    if (!trace_) return;
    trace_->noted(actions.notes);
    actions.notes.clear();
}

void ServerState::trace_moved(const Lists& lists) {
    for (size_t i = 0; i < lists.moving.size(); ++i) {
        const Transfer& transfer = lists.moving[i];
        const auto of =
            transfer.parts.empty() ? descriptions_.end() : descriptions_.find(transfer.parts.front().segment);
        trace_->moved(transfer, of == descriptions_.end() ? "" : of->second.kind, lists.times[i].first,
                      lists.times[i].second);
    }
    trace_->step();
}

}  // namespace heddle::memory
