// The operations of an IpcConnection: which of them need a message, and what comes of those that do.
#include <fmt/format.h>

#include <utility>

#include "base/failpoint.h"
#include "memory/ipc_connection.hpp"

namespace heddle::memory {
namespace {

OperationResult result_of(const LocalRange& local, bool writable) {
    if (!writable) {
        ConstLocalRange constant;
        static_cast<LocalRange&>(constant) = local;
        return constant;
    }
    MutableLocalRange own;
    static_cast<LocalRange&>(own) = local;
    return own;
}

MemoryError unknown_range(const LocalRange& local) {
    return {MemoryErrorCode::kUnknown,
            fmt::format("local range {:#x} is not held by this client: it was released, or is not one that "
                        "an operation returned",
                        local.id)};
}

CacheId wanted_cache(const Operation& operation) {
    return std::visit(
        [](const auto& one) {
            if constexpr (requires { one.cache; })
                return one.cache;
            else
                return CacheId{};
        },
        operation);
}

}  // namespace

OperationState::Outcome IpcConnection::outcome_of(const ipc::Reply& reply, const Running& running) {
    const auto* const failure = std::get_if<ipc::Failure>(&reply);
    if (running.released && !PinnedCopies::is_pinned(running.released->id)) {
        if (failure != nullptr) held_.emplace(running.released->id, *running.released);
    } else if (running.released && failure == nullptr) {
        if (PinnedCopies* const copies = copies_with(*running.released))
            copies->release(running.released->id);
    }
    if (failure != nullptr) {
        if (failure->memory_code) return MemoryError(*failure->memory_code, failure->text);
        return std::make_exception_ptr(Error(failure->code, failure->text));
    }
    const auto* const got = std::get_if<ipc::Got>(&reply);
    if (got == nullptr) return OperationResult{};
    LocalRange local = got->local;
    const auto cache = caches_.find(local.cache);
    // It was deleted meanwhile, by another thread.
    if (cache == caches_.end()) return MemoryError(MemoryErrorCode::kUnknown, "its cache was deleted");
    const bool apart = got->writable && cache->second.staging != nullptr;
    local.base = (apart ? cache->second.staging : cache->second.payload)->data();
    held_.emplace(local.id, local);
    return result_of(local, got->writable);
}

PinnedCopies* IpcConnection::copies_with(const LocalRange& local) {
    if (!PinnedCopies::is_pinned(local.id)) return nullptr;
    const auto cache = caches_.find(local.cache);
    if (cache == caches_.end() || cache->second.copies->pin(local.id) == kNoPin) return nullptr;
    return cache->second.copies.get();
}

std::optional<OperationResult> IpcConnection::do_here(const Operation& operation) {
    if (const auto* const release = std::get_if<op::Release>(&operation)) {
        PinnedCopies* const copies = copies_with(release->local);
        if (copies == nullptr) return {};
        copies->release(release->local.id);
        return OperationResult{};
    }
    const auto* const get = std::get_if<op::GetConst>(&operation);
    // With a tag it may have to be counted; and what is being put now is seen by a get that comes after it.
    if (get == nullptr || get->tag || writing_ > 0) return {};
    const auto cache = caches_.find(get->cache);
    if (cache == caches_.end()) return {};
    const auto pinned = cache->second.copies->get(get->global);
    if (!pinned) return {};
    return result_of(
        {get->cache, pinned->id, cache->second.payload->data(), {pinned->place, get->global.range.size}},
        false);
}

LocalRange IpcConnection::hold_pinned(const LocalRange& local) {
    Pin pin = kNoPin;
    {
        const Lock lock = locked();
        if (const PinnedCopies* const copies = copies_with(local)) pin = copies->pin(local.id);
    }
    if (pin == kNoPin) throw unknown_range(local);
    const Answer answer = ask(ipc::HoldPinned{local.cache, pin});
    const auto* const got = std::get_if<ipc::Got>(&answer.content);
    if (got == nullptr) throw unknown_range(local);
    return got->local;
}

void IpcConnection::execute(const Operation& operation, const std::shared_ptr<OperationState>& state) {
    try {
        begin(operation, state);
    } catch (const MemoryError& error) {
        if (state->end(error)) state->tell();
    } catch (...) {
        if (state->end(std::current_exception())) state->tell();
    }
}

void IpcConnection::check_held(const LocalRange& local) const {
    const auto held = held_.find(local.id);
    if (held == held_.end()) throw unknown_range(local);
    check_part_of(held->second, local);
}

void IpcConnection::begin(const Operation& operation, const std::shared_ptr<OperationState>& state) {
    map_cache(wanted_cache(operation));
    const auto* const release = std::get_if<op::Release>(&operation);
    const auto* const put = std::get_if<op::Put>(&operation);
    LocalRange lent;
    std::optional<op::Put> of_pinned;
    bool tells = false;
    if (put != nullptr && PinnedCopies::is_pinned(put->source.id)) {
        lent = hold_pinned(put->source);
        of_pinned = *put;
        of_pinned->source.id = lent.id;
        of_pinned->release = false;
    }
    {
        const Lock lock = locked();
        check_there();
        if (auto result = do_here(operation)) {
            tells = state->end(std::move(*result));
        } else if (release != nullptr) {
            // Nobody waits for it: what may be wrong with it is found here.
            check_held(release->local);
            held_.erase(release->local.id);
            send(ipc::packet_of(0, ipc::Request(*release)));
            tells = state->end(OperationResult{});
        } else {
            Running running{state, {}};
            if (put != nullptr && !of_pinned) check_held(put->source);
            if (put != nullptr && put->release) {
                const auto held = held_.find(put->source.id);
                running.released = held != held_.end() ? held->second : put->source;
                if (held != held_.end()) held_.erase(held);
            }
            running.writes = put != nullptr || std::holds_alternative<op::GetExclusive>(operation);
            if (running.writes) ++writing_;
            state->ticket = ++last_number_;
            running_.emplace(last_number_, std::move(running));
            const Operation asked = of_pinned ? Operation(*of_pinned) : operation;
            send(std::visit([&](const auto& one) { return ipc::packet_of(last_number_, ipc::Request(one)); },
                            asked));
            // It was held for this put alone.
            if (of_pinned) send(ipc::packet_of(0, ipc::Request(op::Release{lent})));
        }
    }
    HEDDLE_FAILPOINT(memory_has_begun);
    if (tells) state->tell();
}

OperationResult IpcConnection::execute_sync(const Operation& operation) {
    {
        const Lock lock = locked();
        check_there();
        if (auto result = do_here(operation)) return std::move(*result);
    }
    const auto state = std::make_shared<OperationState>();
    execute(operation, state);
    wait(*state);
    return state->take();
}

void IpcConnection::execute_here(const Operations& operations, const States& states) {
    for (size_t i = 0; i < operations.size(); ++i) execute(operations[i], states[i]);
}

bool IpcConnection::is_done(const OperationState& state) {
    const Lock lock = locked();
    return state.done();
}

void IpcConnection::wait(OperationState& state) {
    if (is_own_thread())
        while (!is_done(state) && take_turn())
            ;
    {
        const Lock lock = locked();
        if (state.done()) return;
        state.announce_wait();
    }
    state.block();
}

void IpcConnection::give_up(const States& states) {
    if (!is_own_process()) return;
    const Lock lock(mutex_);
    for (const auto& state : states)
        if (!state->done() && running_.contains(state->ticket))
            send(ipc::packet_of(0, ipc::Request(ipc::GiveUp{state->ticket})));
}

void IpcConnection::release_soon(const LocalRange& local) noexcept {
    if (!is_own_process()) return;
    const Lock lock(mutex_);
    if (PinnedCopies* const copies = copies_with(local)) {
        copies->release(local.id);
    } else if (held_.erase(local.id) > 0 && !left_ && !gone_)
        send(ipc::packet_of(0, ipc::Request(op::Release{local})));
}

}  // namespace heddle::memory
