// Puts that wait until what they would overwrite has been read (docs/COHERENCE.md, Readers).
#include <algorithm>
#include <utility>

#include "memory/access.hpp"
#include "memory/caching_agent.hpp"

namespace heddle::memory {

void CachingAgent::wait_for_readers(Access& access, Actions& actions) {
    end_writing(access, false, false, actions);
    if (access.purpose == Access::Purpose::kExclusive && access.entry != nullptr) {
        // Who waits holds no room, either.
        cache(access.cache).cache.unpin(*access.entry);
        access.entry = nullptr;
    }
    // Its client has left: nothing has been written.
    if (access.waiters.empty() && !access.retained) return give_up_waiting(access, actions);
    access.awaited_readers = access.pieces.size();
    if (!lost_.empty() && is_stuck(access))
        return fail_waiting(access, "a rank on which a part of it lies is gone", actions);
    for (const Piece& piece : access.pieces) send(MessageKind::kReadersRequest, access, piece, actions);
    retain(access, actions);
}

void CachingAgent::readers_gone(Access& access, Actions& actions) {
    if (--access.awaited_readers > 0) return;
    if (access.purpose == Access::Purpose::kPut) return go_on(access, actions);
    try {
        fetch(access, cache(access.cache), actions);
    } catch (const MemoryError& error) {
        fail(access, error, actions);
    }
}

bool CachingAgent::is_behind_another(const Access& access) const {
    return std::ranges::any_of(accesses_, [&](const auto& one) {
        const Access& earlier = *one.second;
        return earlier.id < access.id && earlier.is_write() &&
               (earlier.is_held_back() || earlier.readers > 0) && earlier.global.data == access.global.data &&
               earlier.global.range.overlaps(access.global.range);
    });
}

void CachingAgent::retain(Access& access, Actions& actions) const {
    if (access.retain == 0 || access.waiters.empty()) return;
    const auto waiting = std::ranges::count_if(accesses_, [&](const auto& one) {
        const Access& other = *one.second;
        return other.id <= access.id && other.purpose == Access::Purpose::kPut && !other.moving &&
               other.global.data == access.global.data && other.global.range.overlaps(access.global.range);
    });
    if (static_cast<uint64_t>(waiting) > access.retain) return;
    for (const Get& waiter : std::exchange(access.waiters, {}))
        actions.completions.push_back({waiter.ticket, OperationResult{}});
    access.retained = true;
}

void CachingAgent::end(uint64_t ended, Actions& actions) {
    const bool was_write = accesses_.at(ended)->is_write();
    accesses_.erase(ended);
    const auto held_back = [](const auto& one) { return one.second->is_held_back(); };
    if (!was_write || std::ranges::none_of(accesses_, held_back)) return;
    for (const uint64_t id : access_ids()) {
        const auto found = accesses_.find(id);
        if (found == accesses_.end()) continue;
        Access& access = *found->second;
        if (access.behind && !is_behind_another(access)) {
            access.behind = false;
            go_on(access, actions);
        } else if (access.is_held_back()) {
            retain(access, actions);
        }
    }
}

void CachingAgent::throw_late_error(ClientId client) {
    const auto failed = late_errors_.extract(client);
    if (!failed.empty()) throw MemoryError(failed.mapped());
}

void CachingAgent::tell_read(const GlobalRange& global, Tag tag, Actions& actions) const {
    if (!atlas_.has_data(global.data)) return;
    for (const Piece& piece : atlas_.pieces(global))
        actions.messages.push_back({MessageKind::kHasRead, self_, piece.home, 0, piece.global, tag});
}

void CachingAgent::give_up_waiting(Access& access, Actions& actions) {
    if (access.awaited_tags > 0 || access.awaited_readers > 0)
        for (const Piece& piece : access.pieces) send(MessageKind::kWaitGivenUp, access, piece, actions);
    if (access.purpose == Access::Purpose::kPut) return end_put(access, "it was given up", actions);
    end(access.id, actions);
}

std::vector<uint64_t> CachingAgent::access_ids() const {
    std::vector<uint64_t> ids;
    ids.reserve(accesses_.size());
    for (const auto& one : accesses_) ids.push_back(one.first);
    return ids;
}

}  // namespace heddle::memory
