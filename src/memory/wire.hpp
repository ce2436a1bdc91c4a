// What ranks send each other, as packets of a Transport: messages of the protocol as they are, since all
// ranks run the same program on one machine, and changes of the tables as CBOR.
//
// Nothing of a packet is trusted before it is checked: parse() gives nothing for one that is none.
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "memory/message.hpp"
#include "memory/sequencer.hpp"
#include "memory/survey.hpp"
#include "memory/transport.hpp"

namespace heddle::memory {

/// To rank 0: please.
struct ChangeRequest {
    uint64_t request = 0;
    Command command;
};
/// From rank 0: do it.
struct ChangeCommand {
    uint64_t number = 0;
    Command command;
};
/// To rank 0: done.
struct ChangeApplied {
    uint64_t number = 0;
    Ending ending;
};
/// From rank 0, to who asked for it.
struct ChangeReply {
    uint64_t request = 0;
    uint64_t id = 0;
    Ending ending;
};

/// To rank 0: this rank has come to its nth meeting. `content` is of the rank that has something to tell.
struct Arrival {
    uint64_t meeting = 0;
    std::vector<uint8_t> content;
};
/// From rank 0: all have come, or not all can come.
struct Departure {
    uint64_t meeting = 0;
    Ending ending;
    std::vector<uint8_t> content;
};

using Parsed = std::variant<std::vector<Message>, ChangeRequest, ChangeCommand, ChangeApplied, ChangeReply,
                            Arrival, Departure, SurveyRequest, SurveyReply>;

/// Throws kLimit where it is longer than a packet may be.
[[nodiscard]] Packet packet_of(const Parsed& content);
[[nodiscard]] Packet packet_of(std::span<const Message> messages);
[[nodiscard]] std::optional<Parsed> parse(std::span<const std::byte> packet);

}  // namespace heddle::memory
