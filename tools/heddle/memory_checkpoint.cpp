// heddle memory checkpoint and restore: what a memory server has, into a file and back, on any number of
// ranks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.hpp"
#include "heddle/memory_checkpoint.hpp"
#include "memory_status.hpp"
#include "segment_words.hpp"

namespace heddle::tool {
namespace {

struct CheckpointOptions {
    std::string socket, file;
    std::vector<uint64_t> segments;
};

void keep(const CheckpointOptions& options) {
    memory::Client client(options.socket);
    std::vector<memory::SegmentId> segments;
    for (const uint64_t id : options.segments) segments.push_back({id});
    memory::checkpoint(client, options.file, segments);
}

struct RestoreOptions {
    std::string socket, file, kind, distribution;
    bool json = false;
};

template <class Ids>
nlohmann::json json_of(const Ids& ids) {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& [before, now] : ids) rows.push_back({{"before", before.value}, {"now", now.value}});
    return rows;
}

void restore(const RestoreOptions& options) {
    memory::RestoreOptions wanted;
    if (!options.kind.empty()) wanted.segments = segment_description(options.kind);
    if (!options.distribution.empty()) wanted.data = {options.distribution, {}};
    memory::Client client(options.socket);
    const memory::Restored made = memory::restore(client, options.file, wanted);
    if (options.json) {
        const nlohmann::json all{{"segments", json_of(made.segments)}, {"allocations", json_of(made.data)}};
        fmt::print("{}\n", all.dump());
        return;
    }
    for (const auto& [before, now] : made.segments)
        fmt::print("segment {} is {} now\n", before.value, now.value);
    for (const auto& [before, now] : made.data)
        fmt::print("allocation {} is {} now\n", before.value, now.value);
}

constexpr const char* kSocketHelp = "Where the server listens; default: as of serve";

}  // namespace

void add_memory_checkpoint(CLI::App& memory) {
    const auto kept = std::make_shared<CheckpointOptions>();
    CLI::App* const keeping =
        memory.add_subcommand("checkpoint", "Write segments with all that is in them into a file");
    keeping->add_option("FILE", kept->file, "Is there when it is whole, in the place of an older one")
        ->required();
    keeping->add_option("--segment", kept->segments, "Number of a segment; default: all");
    keeping->add_option("--socket", kept->socket, kSocketHelp);
    keeping->callback([kept] { ask_memory_server([&] { keep(*kept); }); });

    const auto restored = std::make_shared<RestoreOptions>();
    CLI::App* const restoring =
        memory.add_subcommand("restore", "Create the segments of a checkpoint, and tell their new numbers");
    restoring->add_option("FILE", restored->file, "The checkpoint")->required();
    restoring->add_option("--kind", restored->kind,
                          "KIND[,OPTION=VALUE]...: what the segments are to be; default: what they were");
    restoring->add_option("--distribution", restored->distribution,
                          "How to spread the allocations over the ranks; default: as they were");
    restoring->add_flag("--json", restored->json, "As JSON");
    restoring->add_option("--socket", restored->socket, kSocketHelp);
    restoring->callback([restored] { ask_memory_server([&] { restore(*restored); }); });
}

}  // namespace heddle::tool
