// The C interface (heddle/memory.h): errors, servers, clients, segments, allocations, caches, and what all
// ranks do together.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/thread_message.hpp"
#include "memory/c_interface.hpp"

namespace heddle::memory::c {
namespace {

thread_local heddle_memory_ret_t last_code = HEDDLE_MEMORY_SUCCESS;
ThreadMessage last_message;

heddle_memory_ret_t keep(heddle_memory_ret_t code, const char* message) noexcept {
    last_code = code;
    last_message.keep(message);
    return code;
}

/// Far more than ranks can tell each other.
constexpr int64_t kMostShares = 1 << 20;

/// A distribution of the C interface, as one of the C++ one.
struct Described {
    std::string name;
    heddle_memory_distribution_t function;
    void* data;

    std::vector<Share> operator()(uint64_t size, std::span<const uint64_t> free_bytes) const {
        std::vector<heddle_memory_share_t> shares(free_bytes.size());
        int64_t count = 0;
        while (true) {
            count = function(size, free_bytes.data(), static_cast<uint32_t>(free_bytes.size()), shares.data(),
                             shares.size(), data);
            if (count < 0)
                refuse("the distribution \"" + name + "\" has failed: it returned a negative number");
            if (static_cast<uint64_t>(count) <= shares.size()) break;
            if (count > kMostShares)
                throw Error(ErrorCode::kLimit,
                            fmt::format("the distribution \"{}\" has {} shares: {} are the most that there "
                                        "can be",
                                        name, count, kMostShares));
            shares.resize(static_cast<size_t>(count));
        }
        std::vector<Share> all;
        for (const heddle_memory_share_t& share : std::span(shares).first(static_cast<size_t>(count)))
            all.push_back({share.rank, static_cast<uint64_t>(share.size)});
        return all;
    }
};

}  // namespace

heddle_memory_ret_t code_of(const Error& error) noexcept {
    if (const auto* of_memory = dynamic_cast<const MemoryError*>(&error)) {
        switch (of_memory->memory_code()) {
            case MemoryErrorCode::kUnknown:
                return HEDDLE_MEMORY_UNKNOWN;
            case MemoryErrorCode::kOutside:
                return HEDDLE_MEMORY_OUTSIDE;
            case MemoryErrorCode::kLargerThanCache:
                return HEDDLE_MEMORY_LARGER_THAN_CACHE;
            case MemoryErrorCode::kCacheFull:
                return HEDDLE_MEMORY_CACHE_FULL;
            case MemoryErrorCode::kSegmentFull:
                return HEDDLE_MEMORY_SEGMENT_FULL;
            case MemoryErrorCode::kTransfer:
                return HEDDLE_MEMORY_TRANSFER;
            case MemoryErrorCode::kCancelled:
                return HEDDLE_MEMORY_CANCELLED;
        }
    }
    switch (error.code()) {
        case ErrorCode::kInvalidArgument:
        case ErrorCode::kBadInput:
            return HEDDLE_MEMORY_INVALID;
        case ErrorCode::kUnavailable:
        case ErrorCode::kVersionMismatch:
            return HEDDLE_MEMORY_UNAVAILABLE;
        case ErrorCode::kLimit:
            return HEDDLE_MEMORY_LIMIT;
        case ErrorCode::kPermission:
        case ErrorCode::kSystem:
            return HEDDLE_MEMORY_SYSTEM;
    }
    return HEDDLE_MEMORY_SYSTEM;
}

heddle_memory_ret_t note_error() noexcept {
    try {
        throw;
    } catch (const Error& error) {
        return keep(code_of(error), error.what());
    } catch (const std::bad_alloc&) {
        return keep(HEDDLE_MEMORY_LIMIT, "there is no memory");
    } catch (const std::exception& error) {
        return keep(HEDDLE_MEMORY_SYSTEM, error.what());
    } catch (...) {
        return keep(HEDDLE_MEMORY_SYSTEM, "something else than a std::exception was thrown");
    }
}

void refuse(const std::string& message) {
    throw Error(ErrorCode::kInvalidArgument, message);
}

SegmentDescription segment_description(const char* kind, const heddle_memory_option_t* options,
                                       size_t count) {
    SegmentDescription description;
    if (kind != nullptr) description.kind = kind;
    if (options == nullptr && count > 0) refuse("the options of a segment are a null pointer");
    for (size_t i = 0; i < count; ++i) {
        if (options[i].name == nullptr || options[i].value == nullptr)
            refuse("an option of a segment has no name or no value");
        description.options[options[i].name] = options[i].value;
    }
    return description;
}

DataDescription data_description(const char* distribution) {
    return distribution == nullptr ? DataDescription{} : DataDescription{distribution};
}

}  // namespace heddle::memory::c

using namespace heddle::memory;     // NOLINT: the functions below are the C interface of all that is in it
using namespace heddle::memory::c;  // NOLINT: and this is what it is made of

heddle_memory_ret_t heddle_memory_error() {
    return last_code;
}
const char* heddle_memory_error_message() {
    return last_code == HEDDLE_MEMORY_SUCCESS ? "" : last_message.text();
}

heddle_memory_server_t* heddle_memory_server_create(const heddle_memory_server_options_t* options) {
    return made<heddle_memory_server_t>([&] {
        if (options == nullptr) return std::make_unique<ServerObject>();
        return std::make_unique<ServerObject>(ServerOptions{options->rank, options->ranks,
                                                            options->folder == nullptr ? "" : options->folder,
                                                            options->patience_s});
    });
}

heddle_memory_server_t* heddle_memory_server_create_of(int communicator, double patience_s) {
    return made<heddle_memory_server_t>([&] {
        ServerOptions options;
        options.patience_s = patience_s;
        options.communicator = communicator;
        return std::make_unique<ServerObject>(options);
    });
}

heddle_memory_ret_t heddle_memory_server_listen(heddle_memory_server_t* server, const char* path) {
    return guarded([&] {
        ServerObject& own = object(server);
        const std::lock_guard guard(own.listening);
        if (own.for_others) refuse("the server listens already, at " + own.for_others->path());
        own.for_others.emplace(own.server, path == nullptr ? "" : path);
    });
}

heddle_memory_ret_t heddle_memory_server_destroy(heddle_memory_server_t* server) {
    return guarded([&] {
        if (object(server).clients > 0) refuse("the server has clients: destroy them first");
        (void)taken<ServerObject>(server);
    });
}

heddle_memory_ret_t heddle_memory_server_rank(heddle_memory_server_t* server, uint32_t* rank,
                                              uint32_t* ranks) {
    return guarded([&] {
        const Server& asked = object(server).server;
        if (rank != nullptr) *rank = asked.rank();
        if (ranks != nullptr) *ranks = asked.ranks();
    });
}

const char* heddle_memory_counters(heddle_memory_server_t* server) {
    thread_local std::string text;
    const auto ended = guarded([&] { text = to_json(object(server).server.counters()); });
    return ended == HEDDLE_MEMORY_SUCCESS ? text.c_str() : nullptr;
}

heddle_memory_client_t* heddle_memory_client_create(heddle_memory_server_t* server) {
    return made<heddle_memory_client_t>([&] { return std::make_unique<ClientObject>(object(server)); });
}

heddle_memory_client_t* heddle_memory_client_connect(const char* path) {
    return made<heddle_memory_client_t>(
        [&] { return std::make_unique<ClientObject>(std::string(path == nullptr ? "" : path)); });
}

heddle_memory_ret_t heddle_memory_client_destroy(heddle_memory_client_t* client) {
    return guarded([&] {
        if (object(client).futures > 0) refuse("the client has futures: get or destroy them first");
        (void)taken<ClientObject>(client);
    });
}

heddle_memory_ret_t heddle_memory_segment_create(heddle_memory_client_t* client, uint64_t size,
                                                 const char* kind, const heddle_memory_option_t* options,
                                                 size_t count, heddle_memory_segment_t* segment) {
    return guarded([&] {
        auto& to = given(segment, "the segment");
        to = object(client).client.create_segment(size, segment_description(kind, options, count)).value;
    });
}

heddle_memory_ret_t heddle_memory_segment_delete(heddle_memory_client_t* client,
                                                 heddle_memory_segment_t segment) {
    return guarded([&] { object(client).client.delete_segment({segment}); });
}

heddle_memory_ret_t heddle_memory_free_bytes(heddle_memory_client_t* client, heddle_memory_segment_t segment,
                                             uint64_t* free_bytes, size_t room) {
    return guarded([&] {
        if (room > 0) (void)given(free_bytes, "what is free");
        const std::vector<uint64_t> all = object(client).client.free_bytes({segment});
        std::copy_n(all.begin(), std::min(room, all.size()), free_bytes);
    });
}

heddle_memory_ret_t heddle_memory_allocate(heddle_memory_client_t* client, uint64_t size,
                                           heddle_memory_segment_t segment, const char* distribution,
                                           heddle_memory_data_t* data) {
    return guarded([&] {
        auto& to = given(data, "the allocation");
        to = object(client).client.allocate(size, {segment}, data_description(distribution)).value;
    });
}

heddle_memory_ret_t heddle_memory_allocate_filled(heddle_memory_client_t* client, const void* content,
                                                  uint64_t size, heddle_memory_segment_t segment,
                                                  const char* distribution, heddle_memory_data_t* data) {
    return guarded([&] {
        if (content == nullptr && size > 0) refuse("what an allocation is to hold is a null pointer");
        const std::span bytes(static_cast<const std::byte*>(content), static_cast<size_t>(size));
        auto& to = given(data, "the allocation");
        to = object(client).client.allocate_filled(bytes, {segment}, data_description(distribution)).value;
    });
}

heddle_memory_ret_t heddle_memory_free(heddle_memory_client_t* client, heddle_memory_data_t data) {
    return guarded([&] { object(client).client.free({data}); });
}

heddle_memory_ret_t heddle_memory_register_distribution(const char* name,
                                                        heddle_memory_distribution_t distribution,
                                                        void* data) {
    return guarded([&] {
        if (name == nullptr) refuse("a distribution needs a name");
        register_distribution(name, distribution == nullptr
                                        ? Distribution{}
                                        : Distribution(Described{name, distribution, data}));
    });
}

heddle_memory_ret_t heddle_memory_unregister_distribution(const char* name) {
    return guarded([&] { unregister_distribution(name == nullptr ? "" : name); });
}

heddle_memory_ret_t heddle_memory_cache_create(heddle_memory_client_t* client, uint64_t size,
                                               heddle_memory_cache_t* cache) {
    return heddle_memory_cache_create_with(client, size, nullptr, cache);
}

heddle_memory_ret_t heddle_memory_cache_create_with(heddle_memory_client_t* client, uint64_t size,
                                                    const heddle_memory_cache_options_t* options,
                                                    heddle_memory_cache_t* cache) {
    return guarded([&] {
        auto& to = given(cache, "the cache");
        CacheOptions wanted;
        if (options != nullptr) {
            if (options->numa_node < -1)
                refuse(fmt::format("there is no NUMA node {}; -1 is any", options->numa_node));
            wanted.shareable = options->shareable;
            if (options->numa_node >= 0) wanted.numa_node = static_cast<unsigned>(options->numa_node);
        }
        to = object(client).client.create_cache(size, wanted).value;
    });
}

heddle_memory_ret_t heddle_memory_cache_delete(heddle_memory_client_t* client, heddle_memory_cache_t cache) {
    return guarded([&] { object(client).client.delete_cache({cache}); });
}

heddle_memory_ret_t heddle_memory_cache_statistics(heddle_memory_client_t* client,
                                                   heddle_memory_cache_t cache,
                                                   heddle_memory_statistics_t* statistics) {
    return guarded([&] {
        heddle_memory_statistics_t& to = given(statistics, "the statistics");
        const CacheStatistics all = object(client).client.statistics({cache});
        to = {all.size,   all.free_bytes, all.hits,         all.hits_pending,
              all.misses, all.evictions,  all.invalidations};
    });
}

heddle_memory_ret_t heddle_memory_barrier(heddle_memory_server_t* server) {
    return guarded([&] { Collective(object(server).server).barrier(); });
}

heddle_memory_ret_t heddle_memory_broadcast(heddle_memory_server_t* server, void* content, size_t size,
                                            uint32_t root) {
    return guarded([&] {
        if (size > 0) (void)given(static_cast<char*>(content), "what is broadcast");
        const std::span own(static_cast<const std::byte*>(content), size);
        const std::vector<std::byte> all = Collective(object(server).server).broadcast(own, root);
        if (all.size() != size)
            refuse("rank " + std::to_string(root) + " broadcasts " + std::to_string(all.size()) +
                   " bytes, and this rank has room for " + std::to_string(size) +
                   ": all are to say the same");
        std::copy(all.begin(), all.end(), static_cast<std::byte*>(content));
    });
}

heddle_memory_ret_t heddle_memory_collective_segment_create(heddle_memory_server_t* server, uint64_t size,
                                                            const char* kind,
                                                            const heddle_memory_option_t* options,
                                                            size_t count, heddle_memory_segment_t* segment) {
    return guarded([&] {
        auto& to = given(segment, "the segment");
        to = Collective(object(server).server)
                 .create_segment(size, segment_description(kind, options, count))
                 .value;
    });
}

heddle_memory_ret_t heddle_memory_collective_segment_delete(heddle_memory_server_t* server,
                                                            heddle_memory_segment_t segment) {
    return guarded([&] { Collective(object(server).server).delete_segment({segment}); });
}

heddle_memory_ret_t heddle_memory_collective_allocate(heddle_memory_server_t* server, uint64_t size,
                                                      heddle_memory_segment_t segment,
                                                      const char* distribution, heddle_memory_data_t* data) {
    return guarded([&] {
        auto& to = given(data, "the allocation");
        to =
            Collective(object(server).server).allocate(size, {segment}, data_description(distribution)).value;
    });
}

heddle_memory_ret_t heddle_memory_collective_free(heddle_memory_server_t* server, heddle_memory_data_t data) {
    return guarded([&] { Collective(object(server).server).free({data}); });
}
