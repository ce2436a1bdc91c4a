// What an IpcConnection asks its server for, and waits for: all but operations.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/failpoint.h"
#include "memory/ipc_connection.hpp"

namespace heddle::memory {
namespace {

/// Of the cache by which allocations are filled.
constexpr uint64_t kFillPiece = 4 << 20;

/// So many at a time; once where there is none, so that the server is asked.
template <class Value>
std::vector<std::span<const Value>> in_packets(const std::vector<Value>& values) {
    std::vector<std::span<const Value>> packets;
    std::span<const Value> rest(values);
    do {
        packets.push_back(rest.first(std::min(kMostInSurvey, rest.size())));
        rest = rest.subspan(packets.back().size());
    } while (!rest.empty());
    return packets;
}

/// The kernel drops those for which there is no place.
Error no_descriptors(const std::string& path) {
    return {ErrorCode::kLimit,
            fmt::format("this process has too many files open to be shown what the memory server at {} has: "
                        "close some, or raise the limit of open files (ulimit -n)",
                        path)};
}

}  // namespace

IpcConnection::Answer IpcConnection::ask(ipc::Request request) {
    const auto question = std::make_shared<Question>();
    {
        const Lock lock = locked();
        check_there();
        Packet packet = ipc::packet_of(last_number_ + 1, request);
        questions_.emplace(++last_number_, question);
        send(std::move(packet));
    }
    HEDDLE_FAILPOINT(memory_has_asked);
    // The function of a bunch asks, in the thread that receives the answer.
    if (is_own_thread())
        while (!question->answer && take_turn())
            ;
    question->answered.block_until_signalled();
    if (!question->answer) {
        const Lock lock(mutex_);
        check_there();
    }
    if (const auto* failure = std::get_if<ipc::Failure>(&question->answer->content)) ipc::raise(*failure);
    return std::move(*question->answer);
}

template <class Content>
Content IpcConnection::ask_for(ipc::Request request) {
    const Answer answer = ask(std::move(request));
    if (const auto* content = std::get_if<Content>(&answer.content)) return *content;
    throw Error(ErrorCode::kSystem, fmt::format("the memory server at {} answers another question", path_));
}

SegmentId IpcConnection::create_segment(uint64_t size, const SegmentDescription& description) {
    return {ask_for<ipc::Created>(ipc::CreateSegment{size, description}).id};
}
void IpcConnection::delete_segment(SegmentId segment) {
    (void)ask(ipc::DeleteSegment{segment});
}
std::vector<uint64_t> IpcConnection::free_bytes(SegmentId segment) {
    return ask_for<ipc::FreeBytes>(ipc::AskFreeBytes{segment}).ranks;
}
DataId IpcConnection::allocate(uint64_t size, SegmentId segment, const Placement& placement) {
    return {ask_for<ipc::Created>(ipc::AllocateData{size, segment, placement}).id};
}
void IpcConnection::free(DataId data) {
    (void)ask(ipc::FreeData{data});
    const Lock lock(mutex_);
    reserved_.erase(data);
}
void IpcConnection::reserve_versions(DataId data, uint32_t count) {
    {
        const Lock lock = locked();
        const auto known = reserved_.find(data);
        if (known != reserved_.end() && known->second >= count) return;
    }
    (void)ask(ipc::ReserveVersions{data, count});
    const Lock lock(mutex_);
    reserved_[data] = std::max(reserved_[data], count);
}
void IpcConnection::register_reader(const GlobalRange& global, bool reads) {
    (void)ask(ipc::RegisterReader{global, reads});
}

void IpcConnection::fill(DataId data, std::span<const std::byte> content) {
    if (content.empty()) return;
    const CacheId cache = create_cache(std::min<uint64_t>(content.size(), kFillPiece), {});
    // Where it fails the cache goes with the client.
    for (uint64_t offset = 0; offset < content.size(); offset += kFillPiece) {
        const uint64_t size = std::min(content.size() - offset, kFillPiece);
        const auto own = std::get<MutableLocalRange>(execute_sync(op::Allocate{size, cache}));
        std::memcpy(own.pointer(), content.data() + offset, size);
        (void)execute_sync(op::Put{own, {data, {offset, size}}, {}, true});
    }
    delete_cache(cache);
}

void IpcConnection::map_answer(Answer& answer) {
    const auto* const is = std::get_if<ipc::CacheIs>(&answer.content);
    const size_t regions = is == nullptr || is->writable ? 3 : 4;
    if (is != nullptr && answer.regions.size() < regions) throw no_descriptors(path_);
    if (is == nullptr || answer.regions.size() != regions)
        throw Error(ErrorCode::kSystem,
                    fmt::format("the memory server at {} shows no cache when asked for one", path_));
    auto region = answer.regions.begin();
    const auto map = [&](uint64_t size, bool writable) {
        return std::make_unique<MemoryRegion>(std::move(*region++), size, writable);
    };
    const uint32_t listings = listings_of(is->size);
    Mapped mapped;
    mapped.payload = map(is->size, is->writable);
    if (!is->writable) mapped.staging = map(is->size, true);
    mapped.listings = map(listings * sizeof(CopyListing), false);
    mapped.pins = map(sizeof(PinPage), true);
    mapped.copies = std::make_unique<PinnedCopies>(
        std::span(reinterpret_cast<const CopyListing*>(mapped.listings->data()), listings),
        *reinterpret_cast<PinPage*>(mapped.pins->data()));
    HEDDLE_FAILPOINT(memory_has_mapped);
    const Lock lock(mutex_);
    caches_.emplace(is->cache, std::move(mapped));  // another thread may have been first
}

CacheId IpcConnection::create_cache(uint64_t size, const CacheOptions& options) {
    Answer answer = ask(ipc::CreateCache{size, options});
    map_answer(answer);
    return std::get<ipc::CacheIs>(answer.content).cache;
}

void IpcConnection::map_cache(CacheId cache) {
    if (cache == CacheId{}) return;
    {
        const Lock lock = locked();
        if (caches_.contains(cache)) return;
    }
    Answer answer = ask(ipc::AttachCache{cache});
    map_answer(answer);
}

void IpcConnection::delete_cache(CacheId cache) {
    map_cache(cache);
    const auto forget = [&] {
        const Lock lock(mutex_);
        caches_.erase(cache);
    };
    try {
        (void)ask(ipc::DeleteCache{cache});
    } catch (const MemoryError&) {  // somebody else has deleted it
        forget();
        throw;
    }
    forget();
}

CacheStatistics IpcConnection::statistics(CacheId cache) {
    map_cache(cache);
    return ask_for<CacheStatistics>(ipc::AskStatistics{cache});
}

std::string IpcConnection::ask_for_text(ipc::Request request) {
    Answer answer = ask(std::move(request));
    const auto* const is = std::get_if<ipc::TextIs>(&answer.content);
    if (is != nullptr && answer.regions.empty()) throw no_descriptors(path_);
    if (is == nullptr || answer.regions.size() != 1)
        throw Error(ErrorCode::kSystem,
                    fmt::format("the memory server at {} answers another question", path_));
    MemoryRegion region(std::move(answer.regions[0]), is->size, false);
    return {reinterpret_cast<const char*>(region.data()), static_cast<size_t>(region.size())};
}

std::string IpcConnection::status() {
    return ask_for_text(ipc::AskStatus{});
}

Inventory IpcConnection::inventory() {
    try {
        const auto shown = nlohmann::json::parse(status());
        Inventory all;
        for (const auto& row : shown.at("segments"))
            all.segments.push_back({{row.at("id")}, row.at("kind"), row.at("options"), row.at("size")});
        for (const auto& row : shown.at("allocations"))
            all.allocations.push_back(
                {{row.at("id")}, {row.at("segment")}, row.at("size"), row.at("distribution")});
        return all;
    } catch (const nlohmann::json::exception&) {
        throw Error(ErrorCode::kSystem,
                    fmt::format("the memory server at {} does not tell what it has", path_));
    }
}

std::vector<TransferCost> IpcConnection::transfer_costs(const std::vector<PlannedTransfer>& transfers) {
    std::map<Rank, TransferCost> sums;
    for (const std::span<const PlannedTransfer> some : in_packets(transfers)) {
        const auto part = ask_for<ipc::CostsAre>(ipc::AskCosts{{some.begin(), some.end()}});
        for (const TransferCost& cost : part.ranks) {
            sums[cost.rank].rank = cost.rank;
            sums[cost.rank].seconds += cost.seconds;
        }
    }
    std::vector<TransferCost> costs;
    for (const auto& [rank, cost] : sums) costs.push_back(cost);
    std::ranges::stable_sort(costs, {}, &TransferCost::seconds);
    return costs;
}

std::vector<DataLocality> IpcConnection::data_locality(const std::vector<GlobalRange>& ranges) {
    std::vector<DataLocality> all;
    for (const std::span<const GlobalRange> some : in_packets(ranges))
        std::ranges::move(localities_in(ask_for_text(ipc::AskLocality{{some.begin(), some.end()}})),
                          std::back_inserter(all));
    return all;
}

}  // namespace heddle::memory
