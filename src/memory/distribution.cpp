#include "memory/distribution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <ranges>

namespace heddle::memory {
namespace {

struct Registered {
    std::mutex mutex;
    std::map<std::string, Distribution> by_name{{"equally_distributed", equally_distributed},
                                                {"prefix_filled", prefix_filled}};
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

void register_distribution(const std::string& name, Distribution distribution) {
    Registered& all = registered();
    const std::scoped_lock lock(all.mutex);
    const auto [entry, added] = all.by_name.emplace(name, distribution);
    if (!added && entry->second != distribution)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("there is another distribution \"{}\": choose another name", name));
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

}  // namespace heddle::memory
