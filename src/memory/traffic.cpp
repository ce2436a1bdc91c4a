#include "memory/traffic.hpp"

#include <nlohmann/json.hpp>

#include "heddle/memory.hpp"

namespace heddle::memory {
namespace {

using Json = nlohmann::json;

void count_part(TransferCounters& counters, bool reads, uint64_t size) {
    ++(reads ? counters.reads : counters.writes);
    (reads ? counters.bytes_read : counters.bytes_written) += size;
}

void add_moved(Json& json, const TransferCounters& moved) {
    json["reads"] = moved.reads;
    json["bytes_read"] = moved.bytes_read;
    json["writes"] = moved.writes;
    json["bytes_written"] = moved.bytes_written;
}

}  // namespace

void Traffic::count(const Transfer& transfer) {
    for (const Transfer::Part& part : transfer.parts) {
        if (transfer.direction == Transfer::Direction::kWithinCache) {
            bytes_copied_ += part.size;
            continue;
        }
        const auto segment = segments_.find(part.segment);
        if (segment == segments_.end()) continue;
        const bool reads = transfer.direction == Transfer::Direction::kFromSegment;
        count_part(segment->second.moved, reads, part.size);
        count_part((*segment->second.links)[part.rank], reads, part.size);
    }
}

void Traffic::report(Counters& counters) const {
    for (const auto& [id, segment] : segments_)
        counters.segments.push_back({id, segment.kind, segment.moved});
    for (const auto& [kind, ranks] : links_)
        for (const auto& [rank, moved] : ranks) counters.links.push_back({kind, rank, moved});
    counters.bytes_copied_within_caches = bytes_copied_;
}

std::string to_json(const Counters& counters) {
    Json caches = Json::array(), segments = Json::array(), links = Json::array();
    for (const Counters::OfCache& one : counters.caches)
        caches.push_back({{"id", one.cache.value},
                          {"size", one.counters.size},
                          {"free_bytes", one.counters.free_bytes},
                          {"hits", one.counters.hits},
                          {"hits_pending", one.counters.hits_pending},
                          {"misses", one.counters.misses},
                          {"evictions", one.counters.evictions},
                          {"invalidations", one.counters.invalidations}});
    for (const Counters::OfSegment& one : counters.segments) {
        segments.push_back({{"id", one.segment.value}, {"kind", one.kind}});
        add_moved(segments.back(), one.moved);
    }
    for (const Counters::OfLink& one : counters.links) {
        links.push_back({{"kind", one.kind}, {"rank", one.rank}});
        add_moved(links.back(), one.moved);
    }
    return Json{{"rank", counters.rank},
                {"caches", std::move(caches)},
                {"segments", std::move(segments)},
                {"links", std::move(links)},
                {"bytes_copied_within_caches", counters.bytes_copied_within_caches}}
        .dump();
}

}  // namespace heddle::memory
