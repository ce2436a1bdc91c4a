// heddle memory serve, a server of the directory/cache for clients in other processes, and heddle memory
// status, which asks one what it has.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.hpp"
#include "heddle/memory.hpp"
#include "memory/ipc_connection.hpp"

namespace heddle::tool {
namespace {

using Json = nlohmann::json;

uint64_t size_of(const std::string& text) {
    size_t digits = 0;
    uint64_t size = 0;
    try {
        size = std::stoull(text, &digits);
    } catch (const std::exception&) {
        digits = 0;
    }
    const std::string unit = text.substr(digits);
    const unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
    if (digits == 0 || text[0] == '-' || (shift == 0 && !unit.empty()) || size << shift >> shift != size)
        throw UsageError(fmt::format("\"{}\" is no size: it is to be as 4096, 64K, 10M or 2G", text));
    return size << shift;
}

struct WantedSegment {
    uint64_t size = 0;
    memory::SegmentDescription description;
};

/// KIND,SIZE[,OPTION=VALUE]...
WantedSegment segment_of(const std::string& text) {
    std::vector<std::string> words;
    for (size_t from = 0; from <= text.size();) {
        const size_t comma = std::min(text.find(',', from), text.size());
        words.push_back(text.substr(from, comma - from));
        from = comma + 1;
    }
    if (words.size() < 2)
        throw UsageError(
            fmt::format("\"{}\" is no segment: it is to be as shm,64M or file,1G,path=/scratch", text));
    WantedSegment wanted{size_of(words[1]), {words[0], {}}};
    for (size_t i = 2; i < words.size(); ++i) {
        const size_t equals = words[i].find('=');
        if (equals == std::string::npos)
            throw UsageError(
                fmt::format("\"{}\" is no option of a segment: it is to be as path=/scratch", words[i]));
        wanted.description.options[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
    return wanted;
}

struct ServeOptions {
    std::string socket;
    std::vector<std::string> segments, caches;
};

void serve(const ServeOptions& options) {
    std::vector<WantedSegment> segments;
    for (const std::string& text : options.segments) segments.push_back(segment_of(text));
    std::vector<uint64_t> caches;
    for (const std::string& text : options.caches) caches.push_back(size_of(text));
    // Before there is a second thread, so that none takes them.
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);

    memory::Server server;
    memory::Client own(server);
    if (server.rank() == 0)
        for (const WantedSegment& wanted : segments)
            fmt::print("segment {}: {}, {} bytes\n",
                       own.create_segment(wanted.size, wanted.description).value, wanted.description.kind,
                       wanted.size);
    for (const uint64_t size : caches)
        fmt::print("cache {}: {} bytes\n", own.create_cache(size, {.shareable = true}).value, size);
    std::string path = options.socket;
    if (const size_t mark = path.find("%r"); mark != std::string::npos)
        path.replace(mark, 2, std::to_string(server.rank()));
    const memory::IpcServer door(server, path);
    fmt::print("rank {} of {} listens at {}\n", server.rank(), server.ranks(), door.path());
    std::fflush(stdout);
    int signal = 0;
    sigwait(&ends, &signal);
}

uint64_t number(const Json& row, const char* name) {
    return row.value(name, uint64_t{0});
}

void print_status(const Json& all) {
    fmt::print(
        "memory server of rank {} of {}, pid {}: {} client(s), {} local range(s) held, {} operation(s) "
        "under way\n",
        number(all, "rank"), number(all, "ranks"), number(all, "pid"), all["clients"].size(),
        number(all, "local_ranges"), number(all, "operations"));
    for (const Json& one : all["segments"])
        fmt::print("segment {}: {}, {} bytes, {} free; {} bytes read, {} written here\n", number(one, "id"),
                   one.value("kind", "?"), number(one, "size"), number(one, "free_bytes"),
                   number(one, "bytes_read"), number(one, "bytes_written"));
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
    std::string text;
    try {
        text = memory::IpcConnection(options.socket).status();
    } catch (const Error& error) {
        if (error.code() == ErrorCode::kUnavailable) throw ServiceAbsent(error.what());
        throw;
    }
    if (options.json)
        fmt::print("{}\n", text);
    else
        print_status(Json::parse(text));
}

}  // namespace

void add_memory_server(CLI::App& memory) {
    const auto served = std::make_shared<ServeOptions>();
    CLI::App* const serving =
        memory.add_subcommand("serve", "Serve clients in other processes until a signal");
    serving->add_option(
        "--socket", served->socket,
        "Where to listen; %r stands for the rank; default: HEDDLE_MEMORY, or the user's place");
    serving->add_option("--segment", served->segments, "KIND,SIZE[,OPTION=VALUE]...: create a segment");
    serving->add_option("--cache", served->caches, "SIZE: create a cache that clients share");
    serving->callback([served] { serve(*served); });

    const auto shown = std::make_shared<StatusOptions>();
    CLI::App* const status =
        memory.add_subcommand("status", "Show segments, allocations, caches and clients of a memory server");
    status->add_option("--socket", shown->socket, "Where it listens; default: as of serve");
    status->add_flag("--json", shown->json, "As JSON");
    status->callback([shown] { show_status(*shown); });
}

}  // namespace heddle::tool
