// What a ServerState does with caches: their memory, who of other processes uses it, and what `heddle memory
// status` shows.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "memory/server_state.hpp"
#include "topology/cgroup.hpp"

namespace heddle::memory {
namespace {

std::shared_ptr<MemoryRegion> payload_of(uint64_t size, const CacheOptions& options,
                                         MemoryRegion::Sharing sharing) {
    auto memory = std::make_shared<MemoryRegion>(size, sharing);
    if (options.numa_node) memory->prefer_node(*options.numa_node);
    return memory;
}

PinPage& page_in(MemoryRegion& memory) {
    return *reinterpret_cast<PinPage*>(memory.data());
}

}  // namespace

ServerState::SharedListings::SharedListings(uint64_t cache_size)
    : memory(listings_of(cache_size) * sizeof(CopyListing), MemoryRegion::Sharing::kReadOnly),
      copies({reinterpret_cast<CopyListing*>(memory.data()), listings_of(cache_size)}) {}

CacheId ServerState::add_cache(uint64_t size, Payload payload) {
    if (payload.shareable || payload.goes) payload.listings = std::make_shared<SharedListings>(size);
    const Lock lock(mutex_);
    // Caches of all ranks have different names.
    const CacheId id{uint64_t{rank()} << 40u | ++last_cache_};
    node_.caching().add_cache(id, size, payload.memory->data(),
                              payload.listings ? &payload.listings->copies : nullptr);
    payloads_.emplace(id, std::move(payload));
    return id;
}

CacheId ServerState::create_cache(uint64_t size, const CacheOptions& options) {
    using Sharing = MemoryRegion::Sharing;
    // What is more than that would be had, and its process ended when it is filled.
    if (const uint64_t total = read_memory_room(SystemFiles()).total; size > total)
        throw Error(ErrorCode::kLimit,
                    fmt::format("a cache of {} bytes is larger than the memory that this process may have, "
                                "{}: ask for less",
                                size, total));
    const Sharing sharing = options.shareable ? Sharing::kReadOnly : Sharing::kNone;
    return add_cache(size, {payload_of(size, options, sharing), options.shareable});
}

void ServerState::check_room(uint64_t size, const Lock&) const {
    const MemoryRoom room = read_memory_room(SystemFiles());
    uint64_t promised = 0;
    for (const auto& [id, payload] : payloads_)
        promised += payload.memory->size() * (1 + (payload.shareable ? payload.attached : 0));
    const uint64_t left = room.total - std::min(room.total, promised);
    if (size <= std::min(room.free, left)) return;
    throw Error(
        ErrorCode::kLimit,
        fmt::format("a cache that takes {} bytes does not fit: {} bytes of memory are free, and caches, "
                    "with what their clients may write, have {} of {}; ask for less",
                    size, room.free, promised, room.total));
}

ServerState::AttachedCache ServerState::create_client_cache(uint64_t size, const CacheOptions& options) {
    using Sharing = MemoryRegion::Sharing;
    if (size > UINT64_MAX / 2) size = UINT64_MAX / 2;  // it does not fit, nor does it twice
    check_room(options.shareable ? 2 * size : size, Lock(mutex_));
    const Sharing sharing = options.shareable ? Sharing::kReadOnly : Sharing::kWritable;
    const CacheId cache =
        add_cache(size, {payload_of(size, options, sharing), options.shareable, {}, 0, true});
    try {
        return attach_cache(cache);
    } catch (...) {
        delete_cache(cache);
        throw;
    }
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
    using Sharing = MemoryRegion::Sharing;
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
    AttachedCache attached{cache, payload.memory, {payload.listings, &payload.listings->memory}, {}, {}};
    attached.pins = std::make_shared<MemoryRegion>(sizeof(PinPage), Sharing::kWritable);
    if (payload.shareable) {
        check_room(payload.memory->size(), lock);
        attached.staging = std::make_shared<MemoryRegion>(payload.memory->size(), Sharing::kWritable);
    }
    payload.listings->copies.attach(page_in(*attached.pins));
    ++payload.attached;
    return attached;
}

LocalRange ServerState::hold_pinned(ClientId client, CacheId cache, Pin pin) {
    const Lock lock(mutex_);
    return node_.caching().hold_pinned(client, cache, pin);
}

void ServerState::detach_cache(CacheId cache, MemoryRegion& pins) {
    Lock lock(mutex_);
    const auto found = payloads_.find(cache);
    if (found == payloads_.end()) return;  // it was deleted
    found->second.listings->copies.detach(page_in(pins));
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

Inventory ServerState::inventory() {
    return inventory(Lock(mutex_));
}

Inventory ServerState::inventory(const Lock&) const {
    const Atlas& atlas = node_.atlas();
    Inventory all;
    for (const SegmentId id : atlas.segments()) {
        const SegmentDescription& described = descriptions_.at(id);
        all.segments.push_back({id, described.kind, described.options, atlas.size_of(id)});
    }
    for (const DataId id : atlas.allocations())
        all.allocations.push_back({id, atlas.segment_of(id), atlas.size_of(id), distributions_.at(id)});
    return all;
}

ServerStatus ServerState::status() {
    const Lock lock(mutex_);
    ServerStatus all;
    all.ranks = ranks_;
    all.counters.rank = rank();
    all.counters.caches = node_.caching().statistics();
    traffic_.report(all.counters);
    all.inventory = inventory(lock);
    for (const SegmentId segment : node_.atlas().segments()) {
        const std::vector<uint64_t> room = node_.atlas().free_bytes(segment);
        all.room.push_back({segment, std::accumulate(room.begin(), room.end(), uint64_t{0})});
    }
    for (const auto& [cache, payload] : payloads_)
        all.caches.push_back({cache, payload.shareable, payload.attached, node_.caching().in_use(cache)});
    all.local_ranges = node_.caching().held_ranges();
    all.operations = node_.caching().operations();
    return all;
}

}  // namespace heddle::memory
