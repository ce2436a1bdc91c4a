// Puts that wait until what they would overwrite has been read (docs/COHERENCE.md, Readers).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/access.hpp"
#include "memory/caching_agent.hpp"

namespace heddle::memory {
namespace {

/// What is older has come to all homes.
constexpr size_t kMostDead = 64;

}  // namespace

void CachingAgent::wait_for_readers(Access& access, Actions& actions) {
    end_writing(access, {}, false, actions);
    if (access.purpose == Access::Purpose::kExclusive && access.entry != nullptr) {
        // Who waits holds no room, either.
        cache(access.cache).cache.unpin(*access.entry);
        access.entry = nullptr;
    }
    cancel_given_up(access, actions);
    // Its client has left, or its bunch has failed: nothing has been written.
    if (access.waiters.empty()) return give_up_waiting(access, actions);
    access.awaited_readers = access.pieces.size();
    keep_order(access);
    note(access, Note::What::kWaitsForReaders, actions);
    if (!lost_.empty() && is_stuck(access))
        return fail_waiting(access, "a rank on which a part of it lies is gone", actions);
    for (const Piece& piece : access.pieces) send(MessageKind::kReadersRequest, access, piece, actions);
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

void CachingAgent::keep_order(Access& access) {
    if (access.ordered) return;
    access.ordered = true;
    ordered_.add(place_of(access), &access);
}

bool CachingAgent::goes_behind_another(Access& access) {
    const auto earlier = ordered_.find_before(access.global.data.value, access.global.range, access.id);
    access.behind = earlier != ordered_.end();
    if (!access.behind) return false;
    earlier->second->followers.push_back(access.id);
    keep_order(access);
    return true;
}

void CachingAgent::end(uint64_t ended, Actions& actions) {
    Access& access = *accesses_.at(ended);
    if (access.ordered) ordered_.erase(place_of(access));
    std::vector<uint64_t> followers = std::move(access.followers);
    remove_access(ended);
    std::ranges::sort(followers);
    for (const uint64_t id : followers) {
        const auto found = accesses_.find(id);
        if (found != accesses_.end() && !goes_behind_another(*found->second)) go_on(*found->second, actions);
    }
}

void CachingAgent::tell_read(ClientId client, const GlobalRange& global, Tag tag, Actions& actions) {
    if (!atlas_.has_data(global.data) || global.range.size == 0) return;
    readers_[client][global.data] += interval_of(global.range);
    atlas_.for_each_piece(global, 0, [&](const Piece& piece) {
        actions.messages.push_back({MessageKind::kHasRead, self_, piece.home, client, piece.global, tag});
    });
}

void CachingAgent::register_reader(ClientId client, const GlobalRange& global, bool reads) {
    if (atlas_.pieces(global).empty()) return;
    auto& of_client = readers_[client];
    if (reads)
        of_client[global.data] += interval_of(global.range);
    else
        of_client[global.data] -= interval_of(global.range);
}

size_t CachingAgent::registrations(ClientId client) const {
    const auto reader = readers_.find(client);
    if (reader == readers_.end()) return 0;
    size_t pieces = 0;
    for (const auto& [data, bytes] : reader->second) pieces += bytes.iterative_size();
    return pieces;
}

void CachingAgent::tell_reader_died(ClientId client, Actions& actions) {
    const auto reader = readers_.find(client);
    if (reader == readers_.end()) return;
    for (const auto& [data, bytes] : reader->second)
        for (const auto& where : bytes)
            for (const Piece& piece : atlas_.pieces({data, {where.lower(), where.upper() - where.lower()}}))
                actions.messages.push_back(
                    {MessageKind::kReaderDied, self_, piece.home, client, piece.global});
}

void CachingAgent::note_dead_reader(const Message& message, Actions& actions) {
    if (!atlas_.has_data(message.range.data)) return;
    auto& dead = dead_readers_[message.range.data];
    const std::pair<Rank, ClientId> reader(message.reader_rank, message.reader_client);
    const auto access = accesses_.find(message.access);
    const auto known = dead.find(reader);
    if (known != dead.end() && within(interval_of(message.range.range), known->second.told_of)) {
        known->second.told_by.insert(message.from);
    } else if (access != accesses_.end()) {
        if (known == dead.end() && dead.size() >= kMostDead) dead.erase(dead.begin());
        DeadReader& told = dead[reader];
        told.told_by.insert(message.from);
        told.told_of += interval_of(access->second->global.range);
        ++access->second->lost_readers;
    } else {
        return;  // nobody hears of it now: the home tells it again
    }
    actions.messages.push_back({MessageKind::kDeathIsTold, self_, message.from, 0, message.range});
    actions.messages.back().reader_rank = message.reader_rank;
    actions.messages.back().reader_client = message.reader_client;
}

void CachingAgent::readers_lost(Access& access, const Message& message, Actions& actions) {
    if (message.readers == 0)
        return fail_waiting(access, "a rank is gone, and perhaps with it those who are to read it first",
                            actions);
    if (access.lost_readers > 0)
        return fail_waiting(access,
                            fmt::format("{} client(s) that were to read it have died: put again, for so many "
                                        "readers less",
                                        access.lost_readers),
                            actions);
    // Another home has told it before.
    for (const Piece& piece : access.pieces)
        if (piece.global == message.range) send(MessageKind::kReadersRequest, access, piece, actions);
}

void CachingAgent::tell_known_dead(const Access& access, const Piece& piece, Actions& actions) const {
    const auto dead = dead_readers_.find(access.global.data);
    if (dead == dead_readers_.end()) return;
    for (const auto& [reader, told] : dead->second) {
        if (told.told_by.contains(piece.home) || !within(interval_of(piece.global.range), told.told_of))
            continue;
        send(MessageKind::kKnownDead, access, piece, actions);
        actions.messages.back().reader_rank = reader.first;
        actions.messages.back().reader_client = reader.second;
    }
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
