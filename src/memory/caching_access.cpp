// How the accesses of a CachingAgent go on: with each message, and with the end of each transfer.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/access.hpp"
#include "memory/caching_agent.hpp"
#include "memory/home_agent.hpp"

namespace heddle::memory {
namespace {

constexpr const char* kRankIsGone = "a rank on which a part of it lies is gone";
constexpr const char* kSourceIsGone = "the allocation that it was to read was freed meanwhile";
#if defined(HEDDLE_ADDRESS_SANITIZER)
constexpr size_t kMostSpareAccesses = 0;  // it is to see who uses an access that has ended
#else
constexpr size_t kMostSpareAccesses = 512;
#endif

}  // namespace

Access& CachingAgent::new_access(const GlobalRange& global) {
    if (spare_accesses_.empty()) spare_accesses_.push_back(std::make_unique<Access>());
    Access& access = *spare_accesses_.back();
    access.pieces.clear();
    atlas_.for_each_piece(global, 0, [&](const Piece& piece) { access.pieces.push_back(piece); });
    access.id = ++last_access_;
    access.global = global;
    accesses_.emplace_hint(accesses_.end(), access.id, std::move(spare_accesses_.back()));
    spare_accesses_.pop_back();
    return access;
}

void CachingAgent::remove_access(uint64_t id) {
    const auto found = accesses_.find(id);
    std::unique_ptr<Access> ended = std::move(found->second);
    if (ended->is_read()) reads_.erase(place_of(*ended));
    accesses_.erase(found);
    if (spare_accesses_.size() == kMostSpareAccesses) return;
    ended->renew();
    spare_accesses_.push_back(std::move(ended));
}

void CachingAgent::join(Access& access, const Get& waiter) {
    access.waiters.push_back(waiter);
    waiting_[{waiter.client, waiter.ticket}] = &access;
}

void CachingAgent::tell(const Get& waiter, Completion::Outcome outcome, Actions& actions) {
    waiting_.erase({waiter.client, waiter.ticket});
    actions.completions.push_back({waiter.ticket, std::move(outcome)});
}

void CachingAgent::send(MessageKind kind, const Access& access, const Piece& piece, Actions& actions) const {
    actions.messages.push_back({kind, self_, piece.home, access.id, piece.global, access.tag});
    actions.messages.back().retain = access.retain;
}

void CachingAgent::note(const Access& access, Note::What what, Actions& actions, Rank rank) const {
    if (!access.waiters.empty()) note(access.ticket(), what, actions, rank, access.id);
}

void CachingAgent::ask_for_tags(Access& access, Actions& actions) {
    access.awaited_tags = access.pieces.size();
    note(access, Note::What::kWaitsForTag, actions);
    if (!lost_.empty() && is_stuck(access)) return fail_waiting(access, kRankIsGone, actions);
    for (const Piece& piece : access.pieces) send(MessageKind::kTagRequest, access, piece, actions);
}

void CachingAgent::tag_reached(Access& access, Actions& actions) {
    if (--access.awaited_tags > 0) return;
    try {
        CacheState& state = cache(access.cache);
        std::vector<Get> left;
        for (const Get& wanted : std::exchange(access.waiters, {})) {
            try {
                Result result = wanted.prefer_direct ? get_direct(wanted, access.counted) : Result{};
                if (!result && !get_here(wanted, state, result, actions))
                    left.push_back(wanted);
                else if (result)
                    tell(wanted, *result, actions);
            } catch (const MemoryError& error) {
                tell(wanted, error, actions);
            }
        }
        access.waiters = std::move(left);
        if (access.waiters.empty())
            end(access.id, actions);
        else
            fetch(access, state, actions);
    } catch (const MemoryError& error) {
        fail(access, error, actions);
    }
}

void CachingAgent::fetch(Access& access, CacheState& state, Actions& actions) {
    access.entry = &reserve(state, access.cache, access.global.range.size, access.ticket(), actions);
    access.memory = state.payload + access.entry->place.offset;
    if (access.is_read()) reads_.add(place_of(access), &access);
    // What has no bytes takes no room that anybody could need: it would stay for ever.
    if (access.purpose == Access::Purpose::kCopy && !access.pieces.empty()) {
        state.cache.publish(*access.entry, access.global, CacheEntry::State::kFetching);
        access.entry->access = &access;
    }
    go_on(access, actions);
}

bool CachingAgent::is_stuck(const Access& access) const {
    const auto gone = [&](const Piece& piece) { return lost_.contains(piece.home); };
    if (access.awaited_tags > 0 || access.awaited_readers > 0)
        return std::ranges::any_of(access.pieces, gone);
    return access.granted < access.pieces.size() && gone(access.pieces[access.granted]);
}

void CachingAgent::fail_waiting(Access& access, const std::string& why, Actions& actions) {
    if (access.awaited_tags > 0) {
        for (const Piece& piece : access.pieces) send(MessageKind::kWaitGivenUp, access, piece, actions);
        return fail(access,
                    {MemoryErrorCode::kTransfer, fmt::format("the tag cannot be waited for: {}", why)},
                    actions);
    }
    if (access.awaited_readers > 0)
        for (const Piece& piece : access.pieces) send(MessageKind::kWaitGivenUp, access, piece, actions);
    if (access.purpose == Access::Purpose::kPut) return end_put(access, why, actions);
    if (access.awaited_readers > 0)
        return fail(
            access,
            {MemoryErrorCode::kTransfer, fmt::format("the range cannot be had for its owner alone: {}", why)},
            actions);
    end_get(access, why, actions);
}

void CachingAgent::lost(Rank rank, Actions& actions) {
    lost_.insert(rank);
    std::erase_if(delegations_, [&](const auto& one) { return one.first.second == rank; });
    for (const uint64_t id : access_ids()) {
        const auto found = accesses_.find(id);
        if (found != accesses_.end() && is_stuck(*found->second))
            fail_waiting(*found->second, kRankIsGone, actions);
    }
}

void CachingAgent::forget(DataId data, Actions& actions) {
    for (const uint64_t id : access_ids()) {
        const auto found = accesses_.find(id);
        if (found == accesses_.end() || !found->second->is_of(data)) continue;
        Access& access = *found->second;
        if (access.moving || access.held) continue;
        access.source_is_gone = access.global.data != data;
        if (!access.source_is_gone)
            fail_waiting(access, "its allocation was freed meanwhile", actions);
        else if (access.is_held_back())
            fail_waiting(access, kSourceIsGone, actions);
    }
    for (auto& one : readers_) one.second.erase(data);
    dead_readers_.erase(data);
    std::erase_if(delegations_, [&](const auto& one) { return one.first.first == data; });
    for (auto& one : caches_) {
        Cache& cache = one.second.cache;
        cache.for_each_overlapping({data, kAllBytes}, [&](CacheEntry& entry) { cache.withdraw(entry); });
    }
}

bool CachingAgent::is_moving(DataId data) const {
    return std::ranges::any_of(
        accesses_, [&](const auto& one) { return one.second->moving && one.second->is_of(data); });
}

void CachingAgent::go_on(Access& access, Actions& actions) {
    if (access.source_is_gone) return fail_waiting(access, kSourceIsGone, actions);
    for (;; ++access.granted) {
        if (!lost_.empty() && is_stuck(access)) return fail_waiting(access, kRankIsGone, actions);
        if (access.granted == access.pieces.size()) break;
        const Piece& next = access.pieces[access.granted];
        if (!access.is_write() && !access.tag && (is_granted_here(next, actions) || is_delegated(next)))
            continue;
        access.told_gone.clear();
        access.told_more = false;
        const auto kind = access.is_write() ? MessageKind::kWriteRequest : MessageKind::kReadRequest;
        note(access, Note::What::kWaitsForConsent, actions, next.home);
        return send(kind, access, next, actions);
    }
    access.parts.clear();
    // Room for several versions may have been reserved since it began: then it goes to another one's place.
    if (!access.in_place || !access.slices.empty())
        for (const Piece& piece : access.pieces) add_parts(access, piece);
    if (access.last_first) std::ranges::reverse(access.parts);
    access.moving = true;
    actions.transfers.push_back({access.id,
                                 access.purpose == Access::Purpose::kPut ? Transfer::Direction::kToSegment
                                                                         : Transfer::Direction::kFromSegment,
                                 access.parts, nullptr, access.ticket()});
    note(access, Note::What::kMoves, actions);
}

void CachingAgent::add_parts(Access& access, const Piece& piece) const {
    const SegmentId segment = atlas_.segment_of(access.global.data);
    const auto add = [&](const Piece& one) {
        access.parts.push_back({segment, one.home, one.part_offset,
                                access.memory + (one.global.range.offset - access.global.range.offset),
                                one.global.range.size});
    };
    // A home tells of all slots of what it grants, or of none.
    bool told = false;
    for (const Slice& slice : access.slices) {
        if (!slice.range.overlaps(piece.global.range)) continue;
        told = true;
        atlas_.for_each_piece({piece.global.data, slice.range & piece.global.range}, slice.slot, add);
    }
    if (!told) add(piece);
}

void CachingAgent::handle(const Message& message, Actions& actions) {
    if (message.kind == MessageKind::kInvalidate) return invalidate(message, actions);
    if (message.kind == MessageKind::kDeadReaderIs) return note_dead_reader(message, actions);
    const auto found = accesses_.find(message.access);
    if (found == accesses_.end()) return;  // a tag that nobody waits for any more
    Access& access = *found->second;
    switch (message.kind) {
        case MessageKind::kTagReached:
            access.counted |= message.readers > 0;
            return tag_reached(access, actions);
        case MessageKind::kReadersGone:
            return readers_gone(access, actions);
        case MessageKind::kReadersLost:
            return readers_lost(access, message, actions);
        case MessageKind::kWriteRefused:
            if (!access.source_is_gone) return wait_for_readers(access, actions);
            return fail_waiting(access, kSourceIsGone, actions);
        case MessageKind::kSlotIs:
            access.slices.push_back({message.range.range, message.slot});
            return;
        case MessageKind::kReadGrant:
            access.counted |= message.readers > 0;
            if (message.delegates) take_delegation(access, message.from);
            if (message.earlier && access.entry->state == CacheEntry::State::kFetching)
                cache(access.cache).cache.withdraw(*access.entry);
            [[fallthrough]];
        case MessageKind::kWriteGrant:
            ++access.granted;
            return go_on(access, actions);
        case MessageKind::kReadRefused:
            return refused(access, actions);
        default:
            return;  // for home agents
    }
}

void CachingAgent::refused(Access& access, Actions& actions) {
    Cache& here = cache(access.cache).cache;
    if (access.entry->state == CacheEntry::State::kFetching) here.withdraw(*access.entry);
    here.unpin(*access.entry);
    access.entry = nullptr;
    reads_.erase(place_of(access));
    access.granted = 0;
    access.slices.clear();
    let_go(access, actions);
    unshare(access.global, actions);
    cancel_given_up(access, actions);
    if (!access.waiters.empty()) return ask_for_tags(access, actions);
    end(access.id, actions);
}

void CachingAgent::transferred(uint64_t id, const std::string& error, Actions& actions) {
    Access& access = *accesses_.at(id);
    switch (access.purpose) {
        case Access::Purpose::kPut:
            return end_put(access, error, actions);
        case Access::Purpose::kCopyWithin:
            return end_copy_within(access, actions);
        default:
            return end_get(access, error, actions);
    }
}

void CachingAgent::fail(Access& access, const MemoryError& error, Actions& actions) {
    for (const Get& waiter : access.waiters) tell(waiter, error, actions);
    end(access.id, actions);
}

void CachingAgent::end_copy_within(Access& access, Actions& actions) {
    CacheState& state = cache(access.cache);
    state.cache.unpin(*access.source);
    for (const Get& waiter : access.waiters)
        tell(waiter, hold(waiter, state, *access.entry, access.entry->place, nullptr), actions);
    state.cache.unpin(*access.entry);
    remove_access(access.id);
}

void CachingAgent::end_get(Access& access, const std::string& error, Actions& actions) {
    CacheState& state = cache(access.cache);
    CacheEntry& entry = *access.entry;
    if (!error.empty()) {
        if (entry.state == CacheEntry::State::kFetching) state.cache.withdraw(entry);
        state.cache.unpin(entry);
        let_go(access, actions);
        if (access.is_write()) end_writing(access, {}, false, actions);
        const GlobalRange global = access.global;
        fail(access,
             {MemoryErrorCode::kTransfer,
              fmt::format("{} bytes from offset {} of allocation {} could not be read: {}", global.range.size,
                          global.range.offset, global.data.value, error)},
             actions);
        return unshare(global, actions);
    }
    const bool stays = entry.state == CacheEntry::State::kFetching;
    if (stays) {
        entry.access = nullptr;
        entry.tag = access.tag;
        entry.counted = access.counted;
        state.cache.complete(entry);
    }
    const bool exclusive = access.purpose == Access::Purpose::kExclusive;
    access.moving = false;
    access.held = exclusive && !access.waiters.empty();
    for (const Get& waiter : access.waiters) {
        const uint64_t skip = waiter.global.range.offset - access.global.range.offset;
        const Range range{entry.place.offset + skip, waiter.global.range.size};
        tell(waiter, hold(waiter, state, entry, range, exclusive ? &access : nullptr), actions);
        if (waiter.tag && access.counted) tell_read(waiter.client, waiter.global, *waiter.tag, actions);
    }
    access.waiters.clear();
    state.cache.unpin(entry);
    access.entry = nullptr;
    reads_.erase(place_of(access));
    let_go(access, actions);
    if (access.held) return;  // until it is put or released
    if (exclusive) end_writing(access, {}, false, actions);
    const GlobalRange global = access.global;
    end(access.id, actions);
    if (!stays) unshare(global, actions);
}

void CachingAgent::end_source(const Access& access, bool released, Actions& actions) {
    // Its client may have left.
    if (!access.released || !held_.has(*access.released)) return;
    HeldRange& held = held_.at(*access.released);
    held.leaves = false;
    if (!released) return;
    release_held(*access.released, held, actions);
}

bool CachingAgent::keep_as_copy(Access& access) {
    return access.whole_entry && access.entry->state == CacheEntry::State::kPrivate &&
           access.entry->pins == 1 && !access.pieces.empty();
}

void CachingAgent::end_put(Access& access, const std::string& error, Actions& actions) {
    Access& writing = access.under != nullptr ? *access.under : access;
    end_source(access, error.empty(), actions);
    const bool keeps_copy = error.empty() && keep_as_copy(access);
    if (keeps_copy) {
        cache(access.cache).cache.publish(*access.entry, access.global, CacheEntry::State::kValid);
        access.entry->tag = access.tag;
        access.entry->counted = access.readers > 0;
    }
    // What failed may have been written in part: an earlier tag is not true any more.
    if (!error.empty()) access.tag.reset();
    writing.tag = access.tag;
    writing.readers = access.tag ? access.readers : 0;
    end_writing(writing, access.moving ? access.global.range : Range{}, keeps_copy, actions);
    if (access.entry != nullptr) cache(access.cache).cache.unpin(*access.entry);
    if (error.empty()) {
        for (const Get& waiter : access.waiters) tell(waiter, OperationResult{}, actions);
    } else {
        const MemoryError failed(
            MemoryErrorCode::kTransfer,
            fmt::format("{} bytes from offset {} of allocation {} could not be written, or not all: {}",
                        access.global.range.size, access.global.range.offset, access.global.data.value,
                        error));
        for (const Get& waiter : access.waiters) tell(waiter, failed, actions);
    }
    const uint64_t id = access.id;
    if (access.under != nullptr) end(access.under->id, actions);
    end(id, actions);
}

void CachingAgent::end_writing(Access& access, const Range& written, bool keeps_copy,
                               Actions& actions) const {
    for (size_t i = 0; i < access.granted; ++i) {
        const Piece& piece = access.pieces[i];
        if (!written.overlaps(piece.global.range)) {
            send(MessageKind::kWriteGivenUp, access, piece, actions);
            continue;
        }
        if (access.readers > 0) tell_known_dead(access, piece, actions);
        send(MessageKind::kWriteDone, access, piece, actions);
        Message& done = actions.messages.back();
        done.range.range = piece.global.range & written;
        done.keeps_copy = keeps_copy;
        done.readers = access.readers;
    }
    access.granted = 0;
    access.slices.clear();
}

}  // namespace heddle::memory
