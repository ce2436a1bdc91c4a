#include "memory/caching_agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/access.hpp"

namespace heddle::memory {
namespace {

template <class Local>
OperationResult as(const LocalRange& local) {
    Local result;
    static_cast<LocalRange&>(result) = local;
    return result;
}

OperationResult as_result(const LocalRange& local, bool writable) {
    return writable ? as<MutableLocalRange>(local) : as<ConstLocalRange>(local);
}

}  // namespace

CachingAgent::CachingAgent(Rank self, const Atlas& atlas) : self_(self), atlas_(atlas) {}
CachingAgent::~CachingAgent() = default;

void CachingAgent::add_cache(CacheId id, uint64_t size, std::byte* payload, CopyListings* listings) {
    caches_.try_emplace(id, size, payload, listings);
}

void CachingAgent::remove_cache(CacheId id, Actions& actions) {
    CacheState& state = cache(id);
    if (const size_t pinned = state.cache.pinned(); pinned > 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("cache {} has {} local range(s) in use: release them before it is deleted",
                                id.value, pinned));
    const std::vector<GlobalRange> copies = state.cache.copies();
    state.cache.close();
    caches_.erase(id);
    for (const GlobalRange& copy : copies) unshare(copy, actions);
}

CachingAgent::CacheState& CachingAgent::cache(CacheId id) {
    const auto found = caches_.find(id);
    if (found == caches_.end())
        throw MemoryError(
            MemoryErrorCode::kUnknown,
            fmt::format("this rank has no cache {}: it was deleted, or is another rank's", id.value));
    return found->second;
}

CacheStatistics CachingAgent::statistics(CacheId id) {
    CacheState& state = cache(id);
    CacheStatistics all = state.counters;
    all.hits += state.cache.hits_elsewhere();
    all.size = state.cache.size();
    all.free_bytes = state.cache.free_bytes();
    return all;
}

std::vector<Counters::OfCache> CachingAgent::statistics() {
    std::vector<Counters::OfCache> all;
    for (const auto& [id, state] : caches_) all.push_back({id, statistics(id)});
    return all;
}

bool CachingAgent::has_copy(const GlobalRange& range, CacheId in) const {
    for (const auto& [id, state] : caches_) {
        if (in != CacheId{} && in != id) continue;
        const CacheEntry* const copy = state.cache.find(range);
        if (copy != nullptr && copy->state == CacheEntry::State::kValid) return true;
    }
    return false;
}

bool CachingAgent::has_part_of(const GlobalRange& range) const {
    bool has = false;
    for (const auto& [id, state] : caches_)
        state.cache.for_each_overlapping(
            range, [&](const CacheEntry& copy) { has |= copy.state == CacheEntry::State::kValid; });
    return has;
}

std::optional<CachingAgent::Here> CachingAgent::here(const GlobalRange& range) const {
    const std::optional<SegmentPlace> place = atlas_.only_place(range);
    if (!place || place->home != self_) return {};
    const auto part = parts_.find(place->segment);
    if (part == parts_.end()) return {};
    return Here{part->second, place->part_offset};
}

std::optional<OperationResult> CachingAgent::start(ClientId client, Ticket ticket, const Operation& operation,
                                                   Actions& actions) {
    struct Starter {
        CachingAgent& agent;
        ClientId client;
        Ticket ticket;
        Actions& actions;
        Result operator()(const op::Allocate& wanted) const {
            return agent.allocate(client, ticket, wanted, actions);
        }
        Result operator()(const op::Release& wanted) const { return agent.release(client, wanted, actions); }
        Result operator()(const op::GetConst& g) const {
            return agent.get({client, ticket, g.global, g.cache, g.tag, g.prefer_direct, false, false},
                             actions);
        }
        Result operator()(const op::GetMutable& g) const {
            return agent.get({client, ticket, g.global, g.cache, g.tag, g.prefer_direct, true, false},
                             actions);
        }
        Result operator()(const op::GetExclusive& g) const {
            return agent.get({client, ticket, g.global, g.cache, {}, false, true, true}, actions);
        }
        Result operator()(const op::Put& wanted) const { return agent.put(client, ticket, wanted, actions); }
    };
    return std::visit(Starter{*this, client, ticket, actions}, operation);
}

CachingAgent::Result CachingAgent::allocate(ClientId client, Ticket ticket, const op::Allocate& wanted,
                                            Actions& actions) {
    CacheState& state = cache(wanted.cache);
    CacheEntry& entry = reserve(state, wanted.cache, wanted.size, ticket, actions);
    return as<MutableLocalRange>(
        held_.add({client, wanted.cache, &entry, state.payload, entry.place, true, {}, nullptr}));
}

CacheEntry& CachingAgent::reserve(CacheState& state, CacheId id, uint64_t size, Ticket ticket,
                                  Actions& actions) {
    CacheEntry* entry = nullptr;
    evicted_.clear();
    const Cache::Room room = state.cache.reserve(size, entry, evicted_);
    if (room == Cache::Room::kNever)
        throw MemoryError(MemoryErrorCode::kLargerThanCache,
                          fmt::format("{} bytes never fit into cache {}, which has {}: create a larger cache",
                                      size, id.value, state.cache.size()));
    if (room == Cache::Room::kFull)
        throw MemoryError(
            MemoryErrorCode::kCacheFull,
            fmt::format("no {} bytes in one piece can be had in cache {} of {}: {} local range(s) are "
                        "in use; release some, or try again later",
                        size, id.value, state.cache.size(), state.cache.pinned()));
    state.counters.evictions += evicted_.size();
    if (!evicted_.empty()) note(ticket, Note::What::kEvicts, actions);
    for (const GlobalRange& gone : evicted_) unshare(gone, actions);
    return *entry;
}

CachingAgent::Result CachingAgent::release(ClientId client, const op::Release& wanted, Actions& actions) {
    release_held(wanted.local, held_.find(wanted.local, client), actions);
    return OperationResult{};
}

void CachingAgent::release_held(const LocalRange& local, const HeldRange& held, Actions& actions) {
    CacheEntry* const entry = held.entry;
    Access* const exclusive = held.exclusive;
    if (held.reads) tell_read(held.client, *held.global, *held.reads, actions);
    if (entry != nullptr) cache(held.cache).cache.unpin(*entry);
    held_.remove(local);
    if (exclusive == nullptr) return;
    end_writing(*exclusive, {}, false, actions);
    end(exclusive->id, actions);
}

LocalRange CachingAgent::hold(const Get& wanted, std::byte* base, const Range& range, CacheId cache,
                              HeldRange*& held) {
    LocalRange local;
    held = &held_.add(local.id);
    // One by one: a copy of the whole would wait for what it is made of to be written.
    held->client = wanted.client;
    held->cache = local.cache = cache;
    held->entry = nullptr;
    held->base = local.base = base;
    held->range = local.range = range;
    held->writable = wanted.writable;
    held->global = wanted.global;
    held->exclusive = nullptr;
    held->reads.reset();
    held->leaves = false;
    return local;
}

OperationResult CachingAgent::hold(const Get& wanted, CacheState& state, CacheEntry& entry,
                                   const Range& range, Access* exclusive) {
    HeldRange* held = nullptr;
    const LocalRange local = hold(wanted, state.payload, range, wanted.cache, held);
    held->entry = &entry;
    held->exclusive = exclusive;
    state.cache.pin(entry);
    return as_result(local, wanted.writable);
}

CachingAgent::Result CachingAgent::get(const Get& wanted, Actions& actions) {
    if (wanted.prefer_direct && !wanted.tag)
        if (Result direct = get_direct(wanted, false)) return direct;
    CacheState& state = cache(wanted.cache);
    Result result;
    if (get_here(wanted, state, result, actions)) return result;
    ++state.counters.misses;
    note(wanted.ticket, Note::What::kMisses, actions);
    Access& access = new_access(wanted.global);
    access.purpose = wanted.exclusive  ? Access::Purpose::kExclusive
                     : wanted.writable ? Access::Purpose::kOwnCopy
                                       : Access::Purpose::kCopy;
    access.cache = wanted.cache;
    access.tag = wanted.tag;
    join(access, wanted);
    if (wanted.tag && !access.pieces.empty()) {
        ask_for_tags(access, actions);
        return {};
    }
    try {
        fetch(access, state, actions);
    } catch (...) {
        waiting_.erase({wanted.client, wanted.ticket});
        remove_access(access.id);
        throw;
    }
    return {};
}

CachingAgent::Result CachingAgent::get_direct(const Get& wanted, bool reads) {
    const std::optional<Here> place = here(wanted.global);
    if (!place) return {};
    HeldRange* held = nullptr;
    const LocalRange local = hold(wanted, place->part, {place->offset, wanted.global.range.size}, {}, held);
    if (reads) held->reads = wanted.tag;
    return as_result(local, wanted.writable);
}

bool CachingAgent::get_here(const Get& wanted, CacheState& state, Result& result, Actions& actions) {
    CacheEntry* const copy = wanted.exclusive ? nullptr : state.cache.find(wanted.global);
    if (copy == nullptr) return false;
    if (copy->state == CacheEntry::State::kValid) {
        if (wanted.tag && copy->tag != wanted.tag) return false;
        const bool counts = wanted.tag && copy->counted;
        if (wanted.writable && !state.cache.has_room(wanted.global.range.size) &&
            !state.cache.is_in_use(*copy)) {
            result = take_over(wanted, *copy, state, actions);
            if (!result) return false;
        } else if (wanted.writable) {
            copy_within(wanted, *copy, state, actions);
        } else {
            const uint64_t skip = wanted.global.range.offset - copy->global.range.offset;
            result =
                hold(wanted, state, *copy, {copy->place.offset + skip, wanted.global.range.size}, nullptr);
        }
        ++state.counters.hits;
        if (counts) tell_read(wanted.client, wanted.global, *wanted.tag, actions);
        return true;
    }
    if (wanted.writable || copy->access->tag != wanted.tag) return false;
    ++state.counters.hits_pending;
    note(wanted.ticket, Note::What::kWaitsForCopy, actions);
    join(*copy->access, wanted);
    return true;
}

CachingAgent::Result CachingAgent::take_over(const Get& wanted, CacheEntry& copy, CacheState& state,
                                             Actions& actions) {
    const GlobalRange global = copy.global;
    const uint64_t skip = wanted.global.range.offset - global.range.offset;
    if (!state.cache.take_over(copy)) {
        unshare(global, actions);
        return {};
    }
    const Range part{copy.place.offset + skip, wanted.global.range.size};
    state.cache.keep_part(copy, part);  // the rest is room for others
    const OperationResult result = hold(wanted, state, copy, part, nullptr);
    state.cache.unpin(copy);
    unshare(global, actions);
    return result;
}

void CachingAgent::copy_within(const Get& wanted, CacheEntry& from, CacheState& state, Actions& actions) {
    state.cache.pin(from);  // so that it is not evicted for the copy
    CacheEntry* own = nullptr;
    try {
        own = &reserve(state, wanted.cache, wanted.global.range.size, wanted.ticket, actions);
    } catch (...) {
        state.cache.unpin(from);
        throw;
    }
    Access& access = new_access(wanted.global);
    access.purpose = Access::Purpose::kCopyWithin;
    access.cache = wanted.cache;
    access.entry = own;
    access.source = &from;
    join(access, wanted);
    const uint64_t skip = wanted.global.range.offset - from.global.range.offset;
    access.moving = true;
    access.parts.push_back(
        {{}, self_, 0, state.payload + from.place.offset + skip, wanted.global.range.size});
    actions.transfers.push_back({access.id, Transfer::Direction::kWithinCache, access.parts,
                                 state.payload + own->place.offset, wanted.ticket});
    note(access, Note::What::kMoves, actions);
}

CachingAgent::Result CachingAgent::put(ClientId client, Ticket ticket, const op::Put& wanted,
                                       Actions& actions) {
    HeldRange& held = held_.find(wanted.source, client);
    const Range& part = wanted.source.range;
    if (part.size != wanted.global.range.size)
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "a local range of {} bytes cannot be put to a global one of {}: both are to be of one "
                "size",
                part.size, wanted.global.range.size));
    Access* const exclusive = held.exclusive;
    const bool within = exclusive != nullptr && exclusive->global.data == wanted.global.data &&
                        exclusive->global.range.contains(wanted.global.range);
    if (exclusive != nullptr && !within)
        throw Error(
            ErrorCode::kInvalidArgument,
            "what was got exclusively can be put to the range that it was got from, or a part of it, alone: "
            "copy it to an allocated local range first");
    if (wanted.readers > 0 && !wanted.tag)
        throw Error(ErrorCode::kInvalidArgument,
                    "a put that is to be read by so many readers needs a tag, by which they are counted");
    if (wanted.retain >= atlas_.versions(wanted.global.data))
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("allocation {} has room for {} version(s) at once, and {} earlier ones are to "
                        "be retained: reserve their room first",
                        wanted.global.data.value, atlas_.versions(wanted.global.data), wanted.retain));
    if (held.entry == nullptr && held.global && !atlas_.has_data(held.global->data))
        throw MemoryError(MemoryErrorCode::kUnknown,
                          fmt::format("allocation {}, of which the local range is a part, was freed",
                                      held.global->data.value));
    Access& access = new_access(wanted.global);
    if (held.reads) tell_read(client, *held.global, *std::exchange(held.reads, std::nullopt), actions);
    access.purpose = Access::Purpose::kPut;
    access.cache = held.cache;
    access.entry = held.entry;
    access.memory = held.base + part.offset;
    access.tag = wanted.tag;
    access.readers = wanted.readers;
    access.retain = wanted.retain;
    join(access, {client, ticket, wanted.global, held.cache});
    access.whole_entry = wanted.release && held.entry != nullptr && part == held.entry->place;
    if (held.entry == nullptr && held.global) access.direct_source = held.global->data;
    if (access.direct_source == wanted.global.data) {
        const uint64_t from = held.global->range.offset + (part.offset - held.range.offset);
        access.in_place = atlas_.versions(wanted.global.data) == 1 && wanted.global.range.offset == from;
        access.last_first = wanted.global.range.offset > from;
    }
    if (exclusive != nullptr) {
        access.under = exclusive;
        access.granted = access.pieces.size();
        access.slices = exclusive->slices;
        held.exclusive = nullptr;
    }
    if (held.entry != nullptr) this->cache(held.cache).cache.pin(*held.entry);
    if (wanted.release) access.released = wanted.source;
    held.leaves = wanted.release;
    if (access.readers > 0) keep_order(access);
    if (access.under == nullptr && goes_behind_another(access))
        note(access, Note::What::kWaitsForPut, actions);
    else
        go_on(access, actions);
    return {};
}

void CachingAgent::give_up(ClientId client, Ticket ticket, Actions& actions) {
    const auto found = waiting_.find({client, ticket});
    if (found == waiting_.end()) return;
    Access& access = *found->second;
    std::ranges::find(access.waiters, ticket, &Get::ticket)->given_up = true;
    if (access.awaited_tags == 0 && !access.is_held_back()) return;
    cancel_given_up(access, actions);
    if (access.waiters.empty()) give_up_waiting(access, actions);
}

void CachingAgent::cancel_given_up(Access& access, Actions& actions) {
    std::erase_if(access.waiters, [&](const Get& waiter) {
        if (waiter.given_up)
            tell(waiter,
                 MemoryError(MemoryErrorCode::kCancelled, "another operation of its bunch has failed"),
                 actions);
        return waiter.given_up;
    });
}

LocalRange CachingAgent::hold_pinned(ClientId client, CacheId id, Pin pin) {
    CacheState& state = cache(id);
    CacheEntry* const entry = pin == kNoPin ? nullptr : state.cache.find(pin);
    if (entry == nullptr)
        throw MemoryError(MemoryErrorCode::kUnknown,
                          fmt::format("cache {} has no copy {:#x} that a client could hold", id.value, pin));
    const LocalRange local =
        held_.add({client, id, entry, state.payload, entry->place, false, entry->global});
    state.cache.pin(*entry);
    return local;
}

LocalRange CachingAgent::hold_memory(ClientId client, const std::byte* memory, uint64_t size) {
    // It is never written through: it is held as one that may not be.
    return held_.add({client, {}, nullptr, const_cast<std::byte*>(memory), {0, size}, false, {}, nullptr});
}

void CachingAgent::drop_memory(const LocalRange& memory) noexcept {
    if (held_.has(memory)) held_.remove(memory);
}

bool CachingAgent::drop_client(LeavingClient& leaving, size_t most, Actions& actions) {
    const ClientId client = leaving.client;
    for (; most > 0; --most) {
        const auto first = waiting_.lower_bound({client, 0});
        if (first == waiting_.end() || first->first.first != client) break;
        Access& access = *first->second;
        std::erase_if(access.waiters, [&](const Get& waiter) {
            if (waiter.client != client) return false;
            tell(waiter, MemoryError(MemoryErrorCode::kCancelled, "its client has left"), actions);
            return true;
        });
        if (access.waiters.empty() && (access.awaited_tags > 0 || access.is_held_back()))
            give_up_waiting(access, actions);
    }
    for (; most > 0 && leaving.place < held_.places(); --most, ++leaving.place)
        if (const std::optional<LocalRange> local = held_.held_at(leaving.place, client)) {
            release_held(*local, held_.at(*local), actions);
        }
    if (most == 0) return true;
    if (leaving.died) tell_reader_died(client, actions);
    readers_.erase(client);
    return false;
}

}  // namespace heddle::memory
