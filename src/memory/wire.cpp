#include "memory/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace heddle::memory {

using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Share, rank, size)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Placement, distribution, by_shares, shares)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Command, kind, id, segment_kind, options, part_sizes, contacts, segment,
                                   size, placement, gone)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ending, error, code, memory_code, contact)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChangeRequest, request, command)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChangeCommand, number, command)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChangeApplied, number, ending)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChangeReply, request, id, ending)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Arrival, meeting, content)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Departure, meeting, ending, content)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedTransfer, data, offset, size, cache, writes, anew, prefer_direct)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SurveyRequest, number, transfers)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SurveyReply, number, seconds, copies)

namespace {

static_assert(std::is_trivially_copyable_v<Message>);

template <size_t I = 1>
std::optional<Parsed> parse_as(size_t which, const Json& json) {
    if constexpr (I < std::variant_size_v<Parsed>) {
        if (which == I)
            return std::optional<Parsed>(std::in_place, std::in_place_index<I>,
                                         json.get<std::variant_alternative_t<I, Parsed>>());
        return parse_as<I + 1>(which, json);
    } else {
        return {};
    }
}

bool is_kind(const Message& message) {
    return message.kind <= MessageKind::kInvalidate;
}

}  // namespace

Packet packet_of(std::span<const Message> messages) {
    Packet packet(1 + messages.size_bytes());
    std::memcpy(packet.data() + 1, messages.data(), messages.size_bytes());
    return packet;
}

Packet packet_of(const Parsed& content) {
    if (const auto* messages = std::get_if<std::vector<Message>>(&content))
        return packet_of(std::span<const Message>(*messages));
    Packet packet{static_cast<std::byte>(content.index())};
    std::visit(
        [&](const auto& change) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(change)>, std::vector<Message>>)
                for (const uint8_t byte : Json::to_cbor(Json(change)))
                    packet.push_back(static_cast<std::byte>(byte));
        },
        content);
    if (packet.size() > Transport::kMaxPacket)
        throw Error(
            ErrorCode::kLimit,
            fmt::format(
                "a change of {} bytes is longer than the {} that ranks can tell each other: use fewer "
                "or shorter options, or a distribution of fewer shares",
                packet.size(), Transport::kMaxPacket));
    return packet;
}

std::optional<Parsed> parse(std::span<const std::byte> packet) {
    if (packet.empty()) return {};
    const auto which = static_cast<size_t>(packet[0]);
    const auto rest = packet.subspan(1);
    if (which == 0) {
        if (rest.empty() || rest.size() % sizeof(Message) != 0) return {};
        std::vector<Message> messages(rest.size() / sizeof(Message));
        std::memcpy(static_cast<void*>(messages.data()), rest.data(), rest.size());
        if (!std::ranges::all_of(messages, is_kind)) return {};
        return messages;
    }
    try {
        const auto* const first = reinterpret_cast<const uint8_t*>(rest.data());
        return parse_as(which, Json::from_cbor(first, first + rest.size()));
    } catch (const Json::exception&) {
        return {};
    }
}

}  // namespace heddle::memory
