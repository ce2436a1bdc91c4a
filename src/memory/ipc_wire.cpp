#include "memory/ipc_wire.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/session_folder.h"
#include "base/settings.hpp"

namespace heddle::memory::ipc {
namespace {

struct Header {
    uint32_t magic = kMagic;
    uint16_t version = kVersion;
    uint16_t kind = 0;
    uint64_t number = 0;
};

template <class Field>
constexpr bool kPlain = std::is_arithmetic_v<Field> || std::is_enum_v<Field>;

class Writer {
  public:
    explicit Writer(const Header& header) { append(&header, sizeof header); }

    template <class... Fields>
    void operator()(const Fields&... fields) {
        (write(fields), ...);
    }
    [[nodiscard]] Packet take() {
        if (packet_.size() > kMaxPacket)
            throw Error(ErrorCode::kLimit,
                        fmt::format("a request of {} bytes is longer than the {} that a client can tell its "
                                    "server: use fewer or shorter options",
                                    packet_.size(), kMaxPacket));
        return std::move(packet_);
    }

  private:
    void append(const void* bytes, size_t size) {
        if (size == 0) return;
        const size_t end = packet_.size();
        packet_.resize(end + size);
        std::memcpy(packet_.data() + end, bytes, size);
    }
    template <class Field>
    requires kPlain<Field>
    void write(const Field& field) { append(&field, sizeof field); }
    template <class Id>
    requires requires(Id id) { id.value; }
    void write(const Id& id) { write(id.value); }
    void write(const std::string& text) {
        write(static_cast<uint32_t>(text.size()));
        append(text.data(), text.size());
    }
    void write(const Range& range) { (*this)(range.offset, range.size); }
    void write(const GlobalRange& global) { (*this)(global.data, global.range); }
    void write(const LocalRange& local) { (*this)(local.cache, local.id, local.range); }
    template <class Value>
    void write(const std::optional<Value>& value) {
        (*this)(value.has_value(), value.value_or(Value{}));
    }
    void write(const Share& share) { (*this)(share.rank, share.size); }
    void write(const TransferCost& cost) { (*this)(cost.rank, cost.seconds); }
    void write(const PlannedTransfer& t) {
        (*this)(t.data, t.offset, t.size, t.cache, t.writes, t.anew, t.prefer_direct);
    }
    template <class Value>
    void write(const std::vector<Value>& values) {
        write(static_cast<uint32_t>(values.size()));
        for (const Value& value : values) write(value);
    }
    void write(const std::map<std::string, std::string>& texts) {
        write(static_cast<uint32_t>(texts.size()));
        for (const auto& [name, value] : texts) (*this)(name, value);
    }

    Packet packet_;
};

/// What is not there is zero, and makes the packet none.
class Reader {
  public:
    explicit Reader(std::span<const std::byte> rest) : rest_(rest) {}

    template <class... Fields>
    void operator()(Fields&... fields) {
        (read(fields), ...);
    }
    [[nodiscard]] bool is_whole() const { return !failed_ && rest_.empty(); }

  private:
    bool take(void* to, size_t size) {
        if (size > rest_.size()) failed_ = true;
        if (failed_) return false;
        if (size > 0) std::memcpy(to, rest_.data(), size);
        rest_ = rest_.subspan(size);
        return true;
    }
    template <class Field>
    requires kPlain<Field>
    void read(Field& field) { (void)take(&field, sizeof field); }
    void read(bool& truth) {
        uint8_t byte = 0;
        read(byte);
        truth = byte != 0;
    }
    template <class Id>
    requires requires(Id id) { id.value; }
    void read(Id& id) { read(id.value); }
    void read(std::string& text) {
        uint32_t size = 0;
        read(size);
        if (size > rest_.size()) failed_ = true;
        if (failed_) return;
        text.resize(size);
        (void)take(text.data(), size);
    }
    void read(Range& range) { (*this)(range.offset, range.size); }
    void read(GlobalRange& global) { (*this)(global.data, global.range); }
    void read(LocalRange& local) { (*this)(local.cache, local.id, local.range); }
    template <class Value>
    void read(std::optional<Value>& value) {
        bool there = false;
        Value content{};
        (*this)(there, content);
        if (there) value = content;
    }
    void read(Share& share) { (*this)(share.rank, share.size); }
    void read(TransferCost& cost) { (*this)(cost.rank, cost.seconds); }
    void read(PlannedTransfer& t) {
        (*this)(t.data, t.offset, t.size, t.cache, t.writes, t.anew, t.prefer_direct);
    }
    template <class Value>
    void read(std::vector<Value>& values) {
        uint32_t count = 0;
        read(count);
        for (uint32_t i = 0; i < count && !failed_; ++i) read(values.emplace_back());
    }
    void read(std::map<std::string, std::string>& texts) {
        uint32_t count = 0;
        read(count);
        for (uint32_t i = 0; i < count && !failed_; ++i) {
            std::string name, value;
            (*this)(name, value);
            texts[name] = value;
        }
    }

    std::span<const std::byte> rest_;
    bool failed_ = false;
};

// The fields of each packet, in their order, for both directions.
template <class Archive, class Content>
void fields(Archive& archive, Content& content) {
    using T = std::remove_const_t<Content>;
    auto& c = content;
    if constexpr (std::is_same_v<T, Hello>)
        archive(c.name);
    else if constexpr (std::is_same_v<T, CreateSegment>)
        archive(c.size, c.description.kind, c.description.options);
    else if constexpr (std::is_same_v<T, AllocateData>)
        archive(c.size, c.segment, c.placement.distribution, c.placement.by_shares, c.placement.shares);
    else if constexpr (std::is_same_v<T, DeleteSegment> || std::is_same_v<T, AskFreeBytes>)
        archive(c.segment);
    else if constexpr (std::is_same_v<T, FreeData>)
        archive(c.data);
    else if constexpr (std::is_same_v<T, CreateCache>)
        archive(c.size, c.options.shareable, c.options.numa_node);
    else if constexpr (std::is_same_v<T, AttachCache> || std::is_same_v<T, DeleteCache> ||
                       std::is_same_v<T, AskStatistics>)
        archive(c.cache);
    else if constexpr (std::is_same_v<T, HoldPinned>)
        archive(c.cache, c.pin);
    else if constexpr (std::is_same_v<T, ReserveVersions>)
        archive(c.data, c.count);
    else if constexpr (std::is_same_v<T, RegisterReader>)
        archive(c.global, c.reads);
    else if constexpr (std::is_same_v<T, GiveUp>)
        archive(c.request);
    else if constexpr (std::is_same_v<T, op::Allocate>)
        archive(c.size, c.cache);
    else if constexpr (std::is_same_v<T, op::Release>)
        archive(c.local);
    else if constexpr (std::is_same_v<T, op::GetConst> || std::is_same_v<T, op::GetMutable>)
        archive(c.global, c.cache, c.tag, c.prefer_direct);
    else if constexpr (std::is_same_v<T, op::GetExclusive>)
        archive(c.global, c.cache);
    else if constexpr (std::is_same_v<T, op::Put>)
        archive(c.source, c.global, c.tag, c.release, c.readers, c.retain);
    else if constexpr (std::is_same_v<T, Welcome>)
        archive(c.rank, c.ranks);
    else if constexpr (std::is_same_v<T, Failure>)
        archive(c.code, c.memory_code, c.text);
    else if constexpr (std::is_same_v<T, Created>)
        archive(c.id);
    else if constexpr (std::is_same_v<T, CacheIs>)
        archive(c.cache, c.size, c.writable);
    else if constexpr (std::is_same_v<T, Got>)
        archive(c.local, c.writable);
    else if constexpr (std::is_same_v<T, CacheStatistics>)
        archive(c.size, c.free_bytes, c.hits, c.hits_pending, c.misses, c.evictions, c.invalidations);
    else if constexpr (std::is_same_v<T, FreeBytes>)
        archive(c.ranks);
    else if constexpr (std::is_same_v<T, TextIs>)
        archive(c.size);
    else if constexpr (std::is_same_v<T, AskCosts>)
        archive(c.transfers);
    else if constexpr (std::is_same_v<T, AskLocality>)
        archive(c.ranges);
    else if constexpr (std::is_same_v<T, CostsAre>)
        archive(c.ranks);
    else
        static_assert(std::is_empty_v<T>);
}

template <class Variant>
Packet written(uint64_t number, const Variant& variant) {
    Header header;
    header.kind = static_cast<uint16_t>(variant.index());
    header.number = number;
    Writer writer(header);
    std::visit([&](const auto& content) { fields(writer, content); }, variant);
    return writer.take();
}

template <class Variant, size_t I = 0>
std::optional<Variant> parse_as(size_t which, std::span<const std::byte> rest) {
    if constexpr (I < std::variant_size_v<Variant>) {
        if (which != I) return parse_as<Variant, I + 1>(which, rest);
        std::variant_alternative_t<I, Variant> content;
        Reader reader(rest);
        fields(reader, content);
        if (!reader.is_whole()) return {};
        return Variant(std::in_place_index<I>, std::move(content));
    } else {
        return {};
    }
}

template <class Variant>
std::optional<Numbered<Variant>> parsed(std::span<const std::byte> packet) {
    Header header;
    if (packet.size() < sizeof header) return {};
    std::memcpy(&header, packet.data(), sizeof header);
    if (header.magic != kMagic || header.version != kVersion) return {};
    auto content = parse_as<Variant>(header.kind, packet.subspan(sizeof header));
    if (!content) return {};
    return Numbered<Variant>{header.number, std::move(*content)};
}

}  // namespace

Packet packet_of(uint64_t number, const Request& request) {
    return written(number, request);
}
Packet packet_of(uint64_t number, const Reply& reply) {
    return written(number, reply);
}
std::optional<Numbered<Request>> parse_request(std::span<const std::byte> packet) {
    return parsed<Request>(packet);
}
std::optional<Numbered<Reply>> parse_reply(std::span<const std::byte> packet) {
    return parsed<Reply>(packet);
}

std::optional<uint16_t> version_of(std::span<const std::byte> packet) {
    Header header;
    if (packet.size() < sizeof header) return {};
    std::memcpy(&header, packet.data(), sizeof header);
    if (header.magic != kMagic) return {};
    return header.version;
}

Failure failure_of(const std::exception& error) {
    Failure failure{ErrorCode::kSystem, {}, error.what()};
    if (const auto* known = dynamic_cast<const Error*>(&error)) failure.code = known->code();
    if (const auto* of_memory = dynamic_cast<const MemoryError*>(&error))
        failure.memory_code = of_memory->memory_code();
    constexpr size_t kLongest = kMaxPacket / 4;
    if (failure.text.size() > kLongest) failure.text.resize(kLongest);
    return failure;
}

void raise(const Failure& failure) {
    if (failure.memory_code) throw MemoryError(*failure.memory_code, failure.text);
    throw Error(failure.code, failure.text);
}

std::string usual_path() {
    if (const std::string named = setting("HEDDLE_MEMORY"); !named.empty()) return named;
    char usual[HEDDLE_SESSION_FOLDER_BYTES];
    if (const char* const session = heddle_session_folder(usual))
        return std::string(session) + "/heddle-memory.sock";
    return fmt::format("/tmp/heddle-memory-{}.sock", ::getuid());
}

}  // namespace heddle::memory::ipc
