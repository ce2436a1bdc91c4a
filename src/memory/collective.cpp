// Collective: calls that all ranks make (heddle/memory.hpp).
#include <algorithm>
#include <cstring>
#include <utility>

#include "memory/server_state.hpp"

namespace heddle::memory {
namespace {

/// In one packet: its bytes are numbers there, of up to two bytes each.
constexpr size_t kPieceOfBroadcast = Transport::kMaxPacket / 4;

/// What rank 0's call ended with, as all get it: its result, or its error.
struct Outcome {
    uint64_t result = 0;
    int32_t code = -1;
    int32_t memory_code = -1;
};

}  // namespace

void Collective::barrier() {
    (void)server_.meet({});
}

std::vector<std::byte> Collective::broadcast(std::span<const std::byte> content, Rank root) {
    if (root >= server_.ranks())
        throw Error(ErrorCode::kInvalidArgument, "the root of a broadcast is none of the ranks");
    std::vector<std::byte> result;
    uint64_t total = 0;
    do {
        std::vector<uint8_t> own;
        if (server_.rank() == root) {
            const auto piece = content.subspan(result.size())
                                   .first(std::min(content.size() - result.size(), kPieceOfBroadcast));
            total = content.size();
            own.resize(sizeof total + piece.size());
            std::memcpy(own.data(), &total, sizeof total);
            if (!piece.empty()) std::memcpy(own.data() + sizeof total, piece.data(), piece.size());
        }
        const std::vector<uint8_t> all = server_.meet(std::move(own));
        if (all.size() < sizeof total)
            throw Error(ErrorCode::kInvalidArgument,
                        "the ranks make different calls, where all have to make the same one");
        std::memcpy(&total, all.data(), sizeof total);
        const auto piece = std::as_bytes(std::span(all).subspan(sizeof total));
        result.insert(result.end(), piece.begin(), piece.end());
    } while (result.size() < total);
    return result;
}

uint64_t Collective::on_one(const std::function<uint64_t()>& change) {
    Outcome outcome;
    std::string text;
    if (server_.rank() == 0) {
        try {
            outcome.result = change();
        } catch (const Error& error) {
            text = error.what();
            outcome.code = static_cast<int32_t>(error.code());
            if (const auto* of_memory = dynamic_cast<const MemoryError*>(&error))
                outcome.memory_code = static_cast<int32_t>(of_memory->memory_code());
        } catch (const std::exception& error) {
            text = error.what();
            outcome.code = static_cast<int32_t>(ErrorCode::kSystem);
        } catch (...) {
            text = "something was thrown that is no std::exception";
            outcome.code = static_cast<int32_t>(ErrorCode::kSystem);
        }
    }
    std::vector<std::byte> own(sizeof outcome + text.size());
    std::memcpy(own.data(), &outcome, sizeof outcome);
    std::memcpy(own.data() + sizeof outcome, text.data(), text.size());
    const std::vector<std::byte> all = broadcast(own, 0);
    std::memcpy(&outcome, all.data(), sizeof outcome);
    if (outcome.code < 0) return outcome.result;
    text.assign(reinterpret_cast<const char*>(all.data()) + sizeof outcome, all.size() - sizeof outcome);
    if (outcome.memory_code >= 0) throw MemoryError(static_cast<MemoryErrorCode>(outcome.memory_code), text);
    throw Error(static_cast<ErrorCode>(outcome.code), text);
}

SegmentId Collective::create_segment(uint64_t size, const SegmentDescription& description) {
    return {on_one([&] { return server_.create_segment(size, description).value; })};
}

void Collective::delete_segment(SegmentId segment) {
    (void)on_one([&] {
        server_.delete_segment(segment);
        return uint64_t{0};
    });
}

DataId Collective::allocate(uint64_t size, SegmentId segment, const DataDescription& description) {
    return {on_one([&] { return allocate_as_described(server_, size, segment, description).value; })};
}

void Collective::free(DataId data) {
    (void)on_one([&] {
        server_.free(data);
        return uint64_t{0};
    });
}

}  // namespace heddle::memory
