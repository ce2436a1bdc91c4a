// heddle memory status: what a memory server has, and what it has been good for.
#include "memory_status.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "memory/ipc_connection.hpp"

namespace heddle::tool {
namespace {

using Json = nlohmann::json;

void print_status(const Json& all) {
    const auto number = status_number;
    fmt::print(
        "memory server of rank {} of {}, pid {}: {} client(s), {} local range(s) held, {} operation(s) "
        "under way\n",
        number(all, "rank"), number(all, "ranks"), number(all, "pid"), all["clients"].size(),
        number(all, "local_ranges"), number(all, "operations"));
    for (const Json& one : all["segments"])
        fmt::print("segment {}: {}, {} bytes, {} free; {} bytes read, {} written here\n", number(one, "id"),
                   one.value("kind", "?"), number(one, "size"), number(one, "free_bytes"),
                   number(one, "bytes_read"), number(one, "bytes_written"));
    for (const Json& one : all["links"])
        fmt::print("link to {} of rank {}: {} bytes in {} reads, {} bytes in {} writes\n",
                   one.value("kind", "?"), number(one, "rank"), number(one, "bytes_read"),
                   number(one, "reads"), number(one, "bytes_written"), number(one, "writes"));
    for (const Json& one : all["allocations"])
        fmt::print("allocation {}: {} bytes in segment {}\n", number(one, "id"), number(one, "size"),
                   number(one, "segment"));
    for (const Json& one : all["caches"])
        fmt::print(
            "cache {}: {} bytes, {} free, {} of its pieces in use; {} hits, {} of them pending, {} "
            "misses, {} evictions, {} invalidations{}\n",
            number(one, "id"), number(one, "size"), number(one, "free_bytes"), number(one, "in_use"),
            number(one, "hits") + number(one, "hits_pending"), number(one, "hits_pending"),
            number(one, "misses"), number(one, "evictions"), number(one, "invalidations"),
            one.value("shareable", false) ? fmt::format("; shared by {} client(s)", number(one, "clients"))
                                          : "");
    for (const Json& one : all["clients"])
        fmt::print("client {} (pid {})\n", one.value("name", ""), number(one, "pid"));
}

struct StatusOptions {
    std::string socket;
    bool json = false;
};

void show_status(const StatusOptions& options) {
    const std::string text = memory_status_text(options.socket);
    if (options.json)
        fmt::print("{}\n", text);
    else
        print_status(Json::parse(text));
}

}  // namespace

std::string memory_status_text(const std::string& socket) {
    std::string text;
    ask_memory_server([&] { text = memory::IpcConnection(socket).status(); });
    return text;
}

void add_memory_status(CLI::App& memory) {
    const auto shown = std::make_shared<StatusOptions>();
    CLI::App* const status =
        memory.add_subcommand("status", "Show segments, allocations, caches and clients of a memory server");
    status->add_option("--socket", shown->socket, "Where it listens; default: as of serve");
    status->add_flag("--json", shown->json, "As JSON");
    status->callback([shown] { show_status(*shown); });
}

}  // namespace heddle::tool
