// What a ServerState does with caches: their memory, who of other processes uses it, and what `heddle memory
// status` shows.
#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "memory/server_state.hpp"

namespace heddle::memory {
namespace {

std::shared_ptr<MemoryRegion> payload_of(uint64_t size, const CacheOptions& options,
                                         MemoryRegion::Sharing sharing) {
    auto memory = std::make_shared<MemoryRegion>(size, sharing);
    if (options.numa_node) memory->prefer_node(*options.numa_node);
    return memory;
}

}  // namespace

CacheId ServerState::add_cache(uint64_t size, Payload payload) {
    const Lock lock(mutex_);
    // Caches of all ranks have different names.
    const CacheId id{uint64_t{rank()} << 40u | ++last_cache_};
    node_.caching().add_cache(id, size, payload.memory->data());
    payloads_.emplace(id, std::move(payload));
    return id;
}

CacheId ServerState::create_cache(uint64_t size, const CacheOptions& options) {
    using Sharing = MemoryRegion::Sharing;
    const Sharing sharing = options.shareable ? Sharing::kReadOnly : Sharing::kNone;
    return add_cache(size, {payload_of(size, options, sharing), options.shareable});
}

CacheId ServerState::create_client_cache(uint64_t size, const CacheOptions& options) {
    using Sharing = MemoryRegion::Sharing;
    const Sharing sharing = options.shareable ? Sharing::kReadOnly : Sharing::kWritable;
    return add_cache(size, {payload_of(size, options, sharing), options.shareable, 0, true});
}

void ServerState::delete_cache(CacheId cache) {
    Lock lock(mutex_);
    Actions actions;
    node_.remove_cache(cache, actions);
    going_.erase(cache);
    const Payload last = std::move(payloads_.extract(cache).mapped());
    hand_over(actions, lock);
}

ServerState::AttachedCache ServerState::attach_cache(CacheId cache) {
    const Lock lock(mutex_);
    const auto found = payloads_.find(cache);
    if (found == payloads_.end() || going_.contains(cache))
        throw MemoryError(
            MemoryErrorCode::kUnknown,
            fmt::format("this rank has no cache {}: it was deleted, or is another rank's", cache.value));
    Payload& payload = found->second;
    if (!payload.shareable && (!payload.goes || payload.attached > 0))
        throw MemoryError(
            MemoryErrorCode::kUnknown,
            fmt::format("cache {} is another client's own: create one that is shareable, to use "
                        "it from several processes",
                        cache.value));
    ++payload.attached;
    return {payload.memory, payload.shareable};
}

void ServerState::detach_cache(CacheId cache) {
    Lock lock(mutex_);
    const auto found = payloads_.find(cache);
    if (found == payloads_.end()) return;  // it was deleted
    if (--found->second.attached > 0 || !found->second.goes) return;
    going_.insert(cache);
    Actions actions;
    hand_over(actions, lock);
}

void ServerState::remove_unused_caches(Actions& actions) {
    for (auto one = going_.begin(); one != going_.end();) {
        const CacheId cache = *one;
        if (node_.caching().in_use(cache) > 0) {
            ++one;
            continue;
        }
        one = going_.erase(one);
        node_.remove_cache(cache, actions);
        payloads_.erase(cache);
    }
}

CacheStatistics ServerState::statistics(CacheId cache) {
    const Lock lock(mutex_);
    return node_.caching().statistics(cache);
}

HeldRange ServerState::held(ClientId client, const LocalRange& local) {
    const Lock lock(mutex_);
    return node_.caching().held(client, local);
}

ServerStatus ServerState::status() {
    const Lock lock(mutex_);
    ServerStatus all;
    all.ranks = ranks_;
    all.counters.rank = rank();
    all.counters.caches = node_.caching().statistics();
    traffic_.report(all.counters);
    for (const SegmentId segment : node_.atlas().segments()) {
        const std::vector<uint64_t> room = node_.atlas().free_bytes(segment);
        all.segments.push_back({segment, node_.atlas().size_of(segment),
                                std::accumulate(room.begin(), room.end(), uint64_t{0})});
    }
    for (const DataId data : node_.atlas().allocations())
        all.allocations.push_back({data, node_.atlas().segment_of(data), node_.atlas().size_of(data)});
    for (const auto& [cache, payload] : payloads_)
        all.caches.push_back({cache, payload.shareable, payload.attached, node_.caching().in_use(cache)});
    all.local_ranges = node_.caching().held_ranges();
    all.operations = node_.caching().operations();
    return all;
}

}  // namespace heddle::memory
