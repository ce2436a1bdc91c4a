// heddle memory serve: a server of the directory/cache for clients in other processes.
#include <fmt/format.h>
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor_limit.hpp"
#include "base/ending_signals.hpp"
#include "byte_size.hpp"
#include "command.hpp"
#include "heddle/memory.hpp"
#include "segment_words.hpp"

namespace heddle::tool {
namespace {

/// A client takes two, and four for each of its caches.
constexpr rlim_t kMostDescriptors = 1 << 18;

struct ServeOptions {
    std::string socket;
    std::vector<std::string> segments, caches;
};

void serve(const ServeOptions& options) {
    std::vector<WantedSegment> segments;
    for (const std::string& text : options.segments) segments.push_back(wanted_segment(text));
    std::vector<uint64_t> caches;
    for (const std::string& text : options.caches) caches.push_back(byte_size(text));
    // Before there is a second thread, so that none takes them.
    const sigset_t ends = ending_signals();
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);

    std::signal(SIGXFSZ, SIG_IGN);  // a client, or a cache, is refused then
    raise_descriptor_limit(kMostDescriptors);
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
}

}  // namespace heddle::tool
