#include "cores/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace heddle {
namespace {

static_assert(sizeof(heddle_hello) <= HEDDLE_MESSAGE_BYTES);
static_assert(sizeof(heddle_status_cpu_list) <= HEDDLE_MESSAGE_BYTES);
static_assert(sizeof(heddle_status_client) <= HEDDLE_MESSAGE_BYTES);
static_assert(sizeof(heddle_grant_page) <= HEDDLE_PAGE_BYTES &&
              sizeof(heddle_client_page) <= HEDDLE_PAGE_BYTES);
/// Cache lines, see heddle_client_page.
static_assert(offsetof(heddle_client_page, sleepers) % 64 == 0 &&
              offsetof(heddle_client_page, release) % 64 == 0);
static_assert(std::atomic<uint8_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<uint64_t>::is_always_lock_free);

BadRequest malformed(std::string reason) {
    return {HEDDLE_REFUSED_MALFORMED, std::move(reason)};
}

bool within(uint32_t value, uint32_t limit) {
    return value <= limit;
}

/// Bytes of the UTF-8 sequence that begins here and stands for a character that a terminal shows; 0 where
/// none does. U+0080 to U+009F are controls, as are those below U+0020.
size_t shown_bytes(std::string_view text) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const unsigned first = byte(0);
    if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
    if (first >= 0xc2 && first < 0xe0) return follows(1) && (first > 0xc2 || byte(1) >= 0xa0) ? 2 : 0;
    if (first >= 0xe0 && first < 0xf0)
        return follows(1) && follows(2) && (first != 0xe0 || byte(1) >= 0xa0) &&
                       (first != 0xed || byte(1) < 0xa0)
                   ? 3
                   : 0;
    if (first >= 0xf0 && first < 0xf5)
        return follows(1) && follows(2) && follows(3) && (first != 0xf0 || byte(1) >= 0x90) &&
                       (first != 0xf4 || byte(1) < 0x90)
                   ? 4
                   : 0;
    return 0;
}

Request decode_hello(const heddle_hello& hello) {
    if (hello.kind > HEDDLE_KIND_OBSERVER) return malformed(fmt::format("kind {} is not one", hello.kind));
    if (hello.mode > HEDDLE_MODE_MASK) return malformed(fmt::format("mode {} is not one", hello.mode));
    for (const uint32_t count : {hello.demand, hello.min_cpus, hello.max_cpus})
        if (!within(count, HEDDLE_MAX_CPUS))
            return malformed(fmt::format("{} CPUs are more than {}", count, int{HEDDLE_MAX_CPUS}));
    if (hello.max_cpus != 0 && hello.min_cpus > hello.max_cpus)
        return malformed(
            fmt::format("a minimum of {} CPUs is above the maximum of {}", hello.min_cpus, hello.max_cpus));
    if (hello.weight < 1 || hello.weight > 1000)
        return malformed(fmt::format("weight {} is not in 1..1000", hello.weight));
    HelloRequest request;
    request.observer = hello.kind == HEDDLE_KIND_OBSERVER;
    request.mode = hello.mode;
    request.hands_over = (hello.features & HEDDLE_FEATURE_HANDOVER) != 0;
    request.demand = static_cast<int>(hello.demand);
    request.min = static_cast<int>(hello.min_cpus);
    request.max = static_cast<int>(hello.max_cpus);
    request.weight = static_cast<int>(hello.weight);
    request.allowed = cpus_of(hello.allowed);
    request.held = cpus_of(hello.held);
    request.owned = cpus_of(hello.owned);
    request.name = clean_text(hello.name, sizeof hello.name);
    return request;
}

Request decode_limits(const heddle_limits& limits) {
    if (!within(limits.min_cpus, HEDDLE_MAX_CPUS) || !within(limits.max_cpus, HEDDLE_MAX_CPUS))
        return malformed("limits are more than the most CPUs there can be");
    if (limits.max_cpus != 0 && limits.min_cpus > limits.max_cpus)
        return malformed("the minimum is above the maximum");
    if (limits.weight < 1 || limits.weight > 1000)
        return malformed(fmt::format("weight {} is not in 1..1000", limits.weight));
    return LimitsRequest{static_cast<int>(limits.min_cpus), static_cast<int>(limits.max_cpus),
                         static_cast<int>(limits.weight)};
}

/// Copies the bytes into a Message and hands it on, if they have exactly its length.
template <class Message, class Decode>
Request exactly(std::span<const std::byte> bytes, Decode decode) {
    if (bytes.size() != sizeof(Message))
        return malformed(fmt::format("{} bytes where {} are due", bytes.size(), sizeof(Message)));
    Message message;
    std::memcpy(static_cast<void*>(&message), bytes.data(), sizeof message);
    return decode(message);
}

}  // namespace

Request decode_request(std::span<const std::byte> bytes) {
    heddle_header header;
    if (bytes.size() < sizeof header) return malformed(fmt::format("{} bytes are no message", bytes.size()));
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != HEDDLE_PROTOCOL_MAGIC) return malformed("this is not heddle's protocol");
    if (header.version != HEDDLE_PROTOCOL_VERSION)
        return BadRequest{HEDDLE_REFUSED_VERSION,
                          fmt::format("the arbiter speaks protocol {}, this program {}: install the same "
                                      "version of heddle for both",
                                      int{HEDDLE_PROTOCOL_VERSION}, header.version)};
    if (header.bytes != bytes.size())
        return malformed(fmt::format("{} bytes came of {}", bytes.size(), header.bytes));
    switch (header.type) {
        case HEDDLE_HELLO:
            return exactly<heddle_hello>(bytes, decode_hello);
        case HEDDLE_DEMAND:
            return exactly<heddle_header>(bytes, [](const auto&) { return DemandRequest{}; });
        case HEDDLE_LEFT:
            return exactly<heddle_epoch_message>(bytes, [](const auto& m) { return LeftRequest{m.epoch}; });
        case HEDDLE_LIMITS:
            return exactly<heddle_limits>(bytes, decode_limits);
        case HEDDLE_STATUS:
            return exactly<heddle_header>(bytes, [](const auto&) { return StatusRequest{}; });
        case HEDDLE_MAPPED:
            return exactly<heddle_header>(bytes, [](const auto&) { return MappedRequest{}; });
        case HEDDLE_RELEASED:
            return exactly<heddle_header>(bytes, [](const auto&) { return ReleasedRequest{}; });
        case HEDDLE_WATCH:
            return exactly<heddle_header>(bytes, [](const auto&) { return WatchRequest{}; });
        default:
            return malformed(fmt::format("message type {} is not a request", header.type));
    }
}

std::string clean_text(const char* text, size_t bytes) {
    std::string_view rest(text, ::strnlen(text, bytes));
    std::string clean;
    while (!rest.empty()) {
        const size_t shown = shown_bytes(rest);
        clean += shown == 0 ? "?" : rest.substr(0, shown);
        rest.remove_prefix(std::max(shown, size_t{1}));
    }
    return clean;
}

CpuSet cpus_of(const heddle_mask& mask) {
    static_assert(sizeof mask == HEDDLE_MAX_CPUS / 8);
    return CpuSet::from_native(reinterpret_cast<const cpu_set_t*>(mask.words), sizeof mask);
}

heddle_mask mask_of(const CpuSet& cpus) {
    heddle_mask mask{};
    for (const int cpu : cpus)
        if (cpu < HEDDLE_MAX_CPUS) mask.words[cpu / 64] |= uint64_t{1} << (cpu % 64);
    return mask;
}

void copy_text(char* to, size_t bytes, std::string_view text) {
    const size_t length = std::min(bytes - 1, text.size());
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
}

}  // namespace heddle
