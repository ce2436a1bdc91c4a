// Codec: messages of protocol.h, from bytes that a peer sent and to bytes.
//
// decode_request trusts nothing: lengths, enums, counts and text are checked, and what it returns is a copy
// within bounds. No state; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "cores/protocol.h"
#include "heddle/cpu_set.hpp"

namespace heddle {

struct HelloRequest {
    bool observer = false;
    bool hands_over = false;
    uint32_t mode = HEDDLE_MODE_AUTO;
    int demand = 1, min = 0, max = 0, weight = 1;
    CpuSet allowed, held, owned;
    std::string name;
};
struct DemandRequest {};
struct LeftRequest {
    uint32_t epoch = 0;
};
struct LimitsRequest {
    int min = 0, max = 0, weight = 1;
};
struct MappedRequest {};
struct ReleasedRequest {};
struct StatusRequest {};
struct WatchRequest {};
/// Not a message of this protocol; `code` is a heddle_refusal.
struct BadRequest {
    uint32_t code;
    std::string reason;
};
using Request = std::variant<HelloRequest, DemandRequest, LeftRequest, LimitsRequest, MappedRequest,
                             ReleasedRequest, StatusRequest, WatchRequest, BadRequest>;

/// Never throws on any bytes.
[[nodiscard]] Request decode_request(std::span<const std::byte> bytes);

/// Fills the header of a message about to be sent.
template <class Message>
Message message_of(heddle_message_type type) {
    Message message{};
    auto& header = reinterpret_cast<heddle_header&>(message);  // every message begins with its header
    header.magic = HEDDLE_PROTOCOL_MAGIC;
    header.version = HEDDLE_PROTOCOL_VERSION;
    header.type = static_cast<uint16_t>(type);
    header.bytes = sizeof(Message);
    return message;
}

/// Text that a peer sent: up to its first zero, and with ? for what could disturb a terminal or a line of a
/// log, which is controls and what is no UTF-8.
[[nodiscard]] std::string clean_text(const char* text, size_t bytes);
[[nodiscard]] CpuSet cpus_of(const heddle_mask& mask);
[[nodiscard]] heddle_mask mask_of(const CpuSet& cpus);
/// Copies at most bytes - 1 characters and ends with a zero.
void copy_text(char* to, size_t bytes, std::string_view text);

}  // namespace heddle
