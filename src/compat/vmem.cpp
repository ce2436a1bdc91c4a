// What vmem.hpp needs of the library: which node this server is, and which segments are made.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>

#include "base/settings.hpp"
#include "heddle/compat/vmem.hpp"

namespace vmem::detail {
namespace {

using heddle::Error;
using heddle::ErrorCode;

bool is_this_host(const std::string& host) {
    char name[HOST_NAME_MAX + 1] = "";
    (void)::gethostname(name, sizeof name - 1);
    return host.empty() || host == "localhost" || host == "127.0.0.1" || host == "::1" || host == name;
}

/// The same for all that list the same nodes, and only theirs; of this user alone.
std::string folder_of(const std::vector<node>& nodes) {
    uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
    for (const node& one : nodes)
        for (const char byte : fmt::format("{}:{};", one.host, one.port))
            hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3u;
    std::string folder = fmt::format("/tmp/heddle-vmem-{}-{:x}", ::getuid(), hash);
    struct stat found {};
    const bool made = ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
    const bool ours = made && ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
                      found.st_uid == ::getuid() && (found.st_mode & 077u) == 0;
    if (!ours)
        throw Error(
            ErrorCode::kSystem,
            fmt::format("{}, where the servers of these nodes find each other, cannot be made, or is not "
                        "this user's alone: {}",
                        folder, made ? "remove it" : std::strerror(errno)));
    return folder;
}

}  // namespace

heddle::memory::ServerOptions options_of(const std::vector<node>& nodes, uint16_t comm_port,
                                         double patience_s) {
    heddle::memory::ServerOptions options;
    options.patience_s = patience_s;
    options.ranks = static_cast<heddle::memory::Rank>(nodes.size());
    options.rank = options.ranks;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!is_this_host(nodes[i].host))
            throw Error(
                ErrorCode::kUnavailable,
                fmt::format(
                    "the node {} is another host than this: servers that are given nodes are those of "
                    "one host",
                    nodes[i].host));
        for (std::size_t other = 0; other < i; ++other)
            if (nodes[other].port == nodes[i].port)
                throw Error(
                    ErrorCode::kInvalidArgument,
                    fmt::format("two nodes have the port {}: each server needs its own", nodes[i].port));
        if (nodes[i].port == comm_port) options.rank = static_cast<heddle::memory::Rank>(i);
    }
    if (options.rank == options.ranks)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("none of the {} nodes has this server's port {}", nodes.size(), comm_port));
    if (nodes.size() > 1) options.folder = folder_of(nodes);
    return options;
}

meeting_place::~meeting_place() {
    // Not while another server is there.
    if (!folder_.empty()) (void)::rmdir(folder_.c_str());
}

void server_base::check_kind(const std::string& kind) const {
    if (std::ranges::find(kinds_, kind) == kinds_.end())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("this server has no factory for segments of kind {}: it has {}", kind,
                                fmt::join(kinds_, ", ")));
}

heddle::memory::SegmentDescription chosen(heddle::memory::SegmentDescription description) {
    const std::string wanted = heddle::setting("HEDDLE_VMEM_SEGMENTS");
    if (wanted.empty()) return description;
    const std::size_t colon = wanted.find(':');
    heddle::memory::SegmentDescription instead{wanted.substr(0, colon), {}};
    if (colon != std::string::npos) instead.options["path"] = wanted.substr(colon + 1);
    return instead;
}

void refuse_negative() {
    throw Error(ErrorCode::kInvalidArgument, "a size, offset, rank or tag cannot be negative");
}

uint64_t id_of(const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size())
        throw Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is no id: it is to be a number", text));
    return value;
}

}  // namespace vmem::detail
