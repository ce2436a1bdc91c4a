// What a client in another process and its server say to each other, as packets of a Unix socket
// (docs/MEMORY_CLIENTS.md; kVersion changes with every change of a packet).
//
// Nothing of a packet is trusted before it is checked: parse_request() and parse_reply() give nothing for one
// that is none. Plain functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "heddle/memory.hpp"
#include "memory/mesh.hpp"
#include "memory/placement.hpp"
#include "memory/survey.hpp"

namespace heddle::memory::ipc {

constexpr uint32_t kMagic = 0x4d444448;  // "HDDM"
constexpr uint16_t kVersion = 5;
constexpr size_t kMaxPacket = 16 * 1024;

/// The first one.
struct Hello {
    std::string name;  ///< to be listed under
};
struct CreateSegment {
    uint64_t size = 0;
    SegmentDescription description;
};
struct DeleteSegment {
    SegmentId segment;
};
struct AllocateData {
    uint64_t size = 0;
    SegmentId segment;
    Placement placement;
};
struct FreeData {
    DataId data;
};
struct CreateCache {
    uint64_t size = 0;
    CacheOptions options;
};
/// One that others share.
struct AttachCache {
    CacheId cache;
};
struct DeleteCache {
    CacheId cache;
};
/// Of a segment, on each rank.
struct AskFreeBytes {
    SegmentId segment;
};
struct AskStatistics {
    CacheId cache;
};
/// Of an operation that waits for a tag.
struct GiveUp {
    uint64_t request = 0;
};
struct AskStatus {};
struct AskCosts {
    std::vector<PlannedTransfer> transfers;
};
struct AskLocality {
    std::vector<GlobalRange> ranges;
};
/// What the client has pinned by itself is to be held for it, so that it can be put: Got.
struct HoldPinned {
    CacheId cache;
    uint64_t pin = 0;
};

/// The client leaves in order.
struct Goodbye {};
struct ReserveVersions {
    DataId data;
    uint32_t count = 1;
};
/// Whether the client is one of those who are to read it.
struct RegisterReader {
    GlobalRange global;
    bool reads = true;
};

/// The base of a local range is not sent: where it lies is another address in each process.
using Request =
    std::variant<Hello, CreateSegment, DeleteSegment, AllocateData, FreeData, CreateCache, AttachCache,
                 DeleteCache, AskFreeBytes, AskStatistics, GiveUp, AskStatus, AskCosts, AskLocality,
                 HoldPinned, Goodbye, ReserveVersions, RegisterReader, op::Allocate, op::Release,
                 op::GetConst, op::GetMutable, op::GetExclusive, op::Put>;

struct Welcome {
    Rank rank = 0;
    Rank ranks = 1;
};
struct Failure {
    ErrorCode code = ErrorCode::kSystem;
    /// Where it is a MemoryError.
    std::optional<MemoryErrorCode> memory_code;
    std::string text;
};
struct Done {};
/// A segment or an allocation.
struct Created {
    uint64_t id = 0;
};
/// Comes with the descriptor of the payload; where that can only be read, with that of a region of the same
/// size in which the client has what it may write; and with those of its listings and of the client's PinPage
/// (copy_listings.hpp).
struct CacheIs {
    CacheId cache;
    uint64_t size = 0;
    bool writable = false;
};
struct Got {
    LocalRange local;
    bool writable = false;
};
struct FreeBytes {
    std::vector<uint64_t> ranks;
};
/// Comes with the descriptor of a region that has the text.
struct TextIs {
    uint64_t size = 0;
};
struct CostsAre {
    std::vector<TransferCost> ranks;
};

using Reply =
    std::variant<Welcome, Failure, Done, Created, CacheIs, Got, CacheStatistics, FreeBytes, TextIs, CostsAre>;

/// `number` is the request's, and of its reply; no reply is sent to 0. Throws kLimit where it is longer than
/// a packet may be.
[[nodiscard]] Packet packet_of(uint64_t number, const Request& request);
[[nodiscard]] Packet packet_of(uint64_t number, const Reply& reply);

template <class Content>
struct Numbered {
    uint64_t number = 0;
    Content content;
};
[[nodiscard]] std::optional<Numbered<Request>> parse_request(std::span<const std::byte> packet);
[[nodiscard]] std::optional<Numbered<Reply>> parse_reply(std::span<const std::byte> packet);
/// Of a packet of this protocol, whatever its version; nothing: it is none.
[[nodiscard]] std::optional<uint16_t> version_of(std::span<const std::byte> packet);

[[nodiscard]] Failure failure_of(const std::exception& error);
[[noreturn]] void raise(const Failure& failure);

/// Where a server listens when nobody said otherwise: HEDDLE_MEMORY, or the user's own place.
[[nodiscard]] std::string usual_path();

}  // namespace heddle::memory::ipc
