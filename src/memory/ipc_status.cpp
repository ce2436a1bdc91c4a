// What a server tells of itself, its ranks and its clients, as JSON.
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "memory/ipc_service.hpp"

namespace heddle::memory {
namespace {

using Json = nlohmann::json;

/// The row of that id, made where there is none yet.
Json& row_of(Json& rows, uint64_t id) {
    for (Json& row : rows)
        if (row["id"] == id) return row;
    return rows.emplace_back(Json{{"id", id}});
}

}  // namespace

std::string IpcService::status() {
    const ServerStatus all = server_.status();
    Json status = Json::parse(to_json(all.counters));
    Json allocations = Json::array(), clients = Json::array();
    for (const auto& one : all.inventory.segments) {
        Json& shown = row_of(status["segments"], one.id.value);
        shown["size"] = one.size;
        shown["options"] = one.options;
    }
    for (const auto& one : all.room) row_of(status["segments"], one.id.value)["free_bytes"] = one.free_bytes;
    for (const auto& one : all.caches) {
        Json& shown = row_of(status["caches"], one.id.value);
        shown["shareable"] = one.shareable;
        shown["clients"] = one.clients;
        shown["in_use"] = one.in_use;
    }
    for (const auto& one : all.inventory.allocations)
        allocations.push_back({{"id", one.id.value},
                               {"segment", one.segment.value},
                               {"size", one.size},
                               {"distribution", one.distribution}});
    {
        const std::scoped_lock lock(peers_mutex_);
        for (const auto& [id, peer] : peers_)
            clients.push_back(
                {{"pid", peer->who.pid}, {"uid", peer->who.uid}, {"name", peer->session->name()}});
    }
    status["ranks"] = all.ranks;
    status["pid"] = ::getpid();
    status["allocations"] = std::move(allocations);
    status["clients"] = std::move(clients);
    status["local_ranges"] = all.local_ranges;
    status["operations"] = all.operations;
    // A name is whatever its client says.
    return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace heddle::memory
