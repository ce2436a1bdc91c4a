#include "memory/distribution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <ranges>
#include <utility>

namespace heddle::memory {
namespace {

using Shares = std::vector<Share>(uint64_t, std::span<const uint64_t>);
constexpr std::pair<const char*, Shares*> kOwn[] = {{"equally_distributed", equally_distributed},
                                                    {"prefix_filled", prefix_filled}};

struct Registered {
    std::mutex mutex;
    std::map<std::string, Distribution> by_name{std::begin(kOwn), std::end(kOwn)};
};

Registered& registered() {
    static Registered all;
    return all;
}

}  // namespace

std::vector<Share> equally_distributed(uint64_t size, std::span<const uint64_t> free_bytes) {
    // Those with the least room first: what does not fit there is spread over those that are left.
    std::vector<Rank> ranks(free_bytes.size());
    std::iota(ranks.begin(), ranks.end(), Rank{0});
    std::ranges::stable_sort(ranks, {}, [&](Rank rank) { return free_bytes[rank]; });
    std::vector<Share> shares(free_bytes.size());
    for (size_t i = 0; i < ranks.size(); ++i) {
        const uint64_t share = std::min(free_bytes[ranks[i]], size / (ranks.size() - i));
        shares[ranks[i]] = {ranks[i], share};
        size -= share;
    }
    std::erase_if(shares, [](const Share& share) { return share.size == 0; });
    return shares;
}

std::vector<Share> prefix_filled(uint64_t size, std::span<const uint64_t> free_bytes) {
    std::vector<Share> shares;
    for (Rank rank = 0; rank < free_bytes.size() && size > 0; ++rank) {
        const uint64_t share = std::min(size, free_bytes[rank]);
        if (share > 0) shares.push_back({rank, share});
        size -= share;
    }
    return shares;
}

bool is_known_on_all_ranks(const std::string& distribution) {
    return std::ranges::any_of(kOwn, [&](const auto& own) { return distribution == own.first; });
}

void register_distribution(const std::string& name, Distribution distribution) {
    if (name.empty()) throw Error(ErrorCode::kInvalidArgument, "a distribution needs a name");
    if (!distribution)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the distribution \"{}\" has no function to call", name));
    Registered& all = registered();
    const std::scoped_lock lock(all.mutex);
    if (!all.by_name.emplace(name, std::move(distribution)).second)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("there is a distribution \"{}\" already: choose another name", name));
}

void unregister_distribution(const std::string& name) {
    Registered& all = registered();
    const std::scoped_lock lock(all.mutex);
    if (is_known_on_all_ranks(name) || all.by_name.erase(name) == 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("nobody has registered a distribution \"{}\"", name));
}

Distribution find_distribution(const std::string& name) {
    Registered& all = registered();
    const std::scoped_lock lock(all.mutex);
    const auto found = all.by_name.find(name);
    if (found != all.by_name.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& entry : all.by_name) names.push_back(entry.first);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no distribution \"{}\": there are {}", name, fmt::join(names, ", ")));
}

void check_shares(const std::vector<Share>& shares, uint64_t size, size_t ranks, const std::string& name) {
    uint64_t placed = 0;
    for (const Share& share : shares) {
        if (share.rank >= ranks)
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("the distribution \"{}\" places {} bytes on rank {}, and there are {} "
                                    "ranks, from 0 on",
                                    name, share.size, share.rank, ranks));
        // A negative number arrives as one that is larger than all that is left.
        if (share.size > size - placed)
            throw Error(
                ErrorCode::kInvalidArgument,
                fmt::format("the distribution \"{}\" places {} bytes on rank {} where {} of {} are left"
                            "{}",
                            name, share.size, share.rank, size - placed, size,
                            share.size > INT64_MAX ? ": was that a negative number?" : ""));
        placed += share.size;
    }
    if (placed != size)
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("the distribution \"{}\" places {} of {} bytes: its shares are to make up all", name,
                        placed, size));
}

}  // namespace heddle::memory
