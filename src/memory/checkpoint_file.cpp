#include "memory/checkpoint_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/crc32c.hpp"
#include "heddle/error.hpp"

namespace heddle::memory {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::array<char, 8> kMagic{'H', 'D', 'L', 'M', 'E', 'M', 'C', 'P'};

struct Header {
    std::array<char, 8> magic = kMagic;
    uint32_t version = CheckpointFile::kVersion;
    uint32_t block = CheckpointFile::kBlock;
    uint64_t table_size = 0;
    uint64_t file_size = 0;
    uint32_t table_sum = 0;
    /// Of all before it.
    uint32_t sum = 0;
};
static_assert(sizeof(Header) == 40 && std::is_trivially_copyable_v<Header>);

template <class Value>
std::span<const std::byte> bytes_of(const Value& value) {
    return std::as_bytes(std::span(&value, 1));
}

uint32_t sum_of(const Header& header) {
    return crc32c(bytes_of(header).first(offsetof(Header, sum)));
}
/// So that a block in the place of another is not taken for it.
uint32_t sum_of_block(std::span<const std::byte> block, uint64_t number) {
    return crc32c(block) ^ crc32c(bytes_of(number));
}

// The table: its fields, in the order in which they lie, for both directions.
template <class Archive, class Table>
void fields(Archive& archive, Table& table) {
    archive.all(table.segments, [&](auto& one) {
        archive(one.id.value, one.size, one.kind);
        archive.options(one.options);
    });
    archive.all(table.allocations,
                [&](auto& one) { archive(one.id.value, one.segment.value, one.size, one.distribution); });
}

class TableWriter {
  public:
    template <class... Fields>
    void operator()(const Fields&... fields) {
        (write(fields), ...);
    }
    template <class Row, class Each>
    void all(const std::vector<Row>& rows, const Each& each) {
        write(static_cast<uint32_t>(rows.size()));
        for (const Row& row : rows) each(row);
    }
    void options(const std::map<std::string, std::string>& options) {
        write(static_cast<uint32_t>(options.size()));
        for (const auto& [name, value] : options) (*this)(name, value);
    }
    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    template <class Number>
    requires std::is_integral_v<Number>
    void write(Number number) { append(bytes_of(number)); }
    void write(const std::string& text) {
        write(static_cast<uint32_t>(text.size()));
        append(std::as_bytes(std::span(text)));
    }
    void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

    std::vector<std::byte> bytes_;
};

/// What is not there is zero, and makes the table none.
class TableReader {
  public:
    explicit TableReader(std::span<const std::byte> bytes) : rest_(bytes) {}
    template <class... Fields>
    void operator()(Fields&... fields) {
        (read(fields), ...);
    }
    template <class Row, class Each>
    void all(std::vector<Row>& rows, const Each& each) {
        for (uint32_t left = count(); left > 0 && whole_; --left) each(rows.emplace_back());
    }
    void options(std::map<std::string, std::string>& options) {
        for (uint32_t left = count(); left > 0 && whole_; --left) {
            std::string name;
            read(name);
            read(options[name]);
        }
    }
    [[nodiscard]] bool whole() const { return whole_ && rest_.empty(); }

  private:
    [[nodiscard]] uint32_t count() {
        uint32_t count = 0;
        read(count);
        return count;
    }
    template <class Number>
    requires std::is_integral_v<Number>
    void read(Number& number) {
        if (!has(sizeof number)) return;
        std::memcpy(&number, rest_.data(), sizeof number);
        rest_ = rest_.subspan(sizeof number);
    }
    void read(std::string& text) {
        const uint32_t size = count();
        if (!has(size)) return;
        text.assign(reinterpret_cast<const char*>(rest_.data()), size);
        rest_ = rest_.subspan(size);
    }
    [[nodiscard]] bool has(size_t size) { return whole_ = whole_ && size <= rest_.size(); }

    std::span<const std::byte> rest_;
    bool whole_ = true;
};

/// How large a file is with these allocations, from the end of its table on; nothing: larger than any.
std::optional<uint64_t> content_size(const Inventory& table) {
    uint64_t all = 0;
    for (const Inventory::Allocation& one : table.allocations) {
        const uint64_t blocks = one.size / CheckpointFile::kBlock + 1;
        if (__builtin_add_overflow(all, one.size, &all) ||
            __builtin_add_overflow(all, blocks * sizeof(uint32_t), &all))
            return {};
        if (one.size % CheckpointFile::kBlock == 0) all -= sizeof(uint32_t);
    }
    return all;
}

/// What cannot be in one; "": nothing.
std::string problem_of(const Inventory& table) {
    std::map<SegmentId, uint64_t> room;
    for (const Inventory::Segment& one : table.segments)
        if (!room.emplace(one.id, one.size).second)
            return fmt::format("segment {} is in it twice", one.id.value);
    std::set<DataId> seen;
    for (const Inventory::Allocation& one : table.allocations) {
        if (!seen.insert(one.id).second) return fmt::format("allocation {} is in it twice", one.id.value);
        const auto in = room.find(one.segment);
        if (in == room.end())
            return fmt::format("allocation {} is in segment {}, which is not in it", one.id.value,
                               one.segment.value);
        if (one.size > in->second)
            return fmt::format("segment {} is smaller than what is in it", one.segment.value);
        in->second -= one.size;
    }
    return {};
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& path, const Inventory& table) : file_(path) {
    TableWriter rows;
    fields(rows, table);
    const std::optional<uint64_t> content = content_size(table);
    if (rows.bytes().size() > kLargestTable || !content)
        throw Error(
            ErrorCode::kLimit,
            fmt::format("{} would have more segments and allocations than a checkpoint can have", path));
    Header header;
    header.table_size = rows.bytes().size();
    header.file_size = sizeof header + header.table_size + *content;
    header.table_sum = crc32c(rows.bytes());
    header.sum = sum_of(header);
    file_.write(bytes_of(header));
    file_.write(rows.bytes());
}

void CheckpointWriter::write(std::span<const std::byte> piece) {
    while (!piece.empty()) {
        const auto block = piece.first(std::min<size_t>(kBlock, piece.size()));
        file_.write(block);
        const uint32_t sum = sum_of_block(block, blocks_++);
        file_.write(bytes_of(sum));
        piece = piece.subspan(block.size());
    }
}

CheckpointReader::CheckpointReader(const std::string& path)
    : CheckpointReader(
          [&] {
              Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
              if (!file.valid())
                  throw Error(ErrorCode::kSystem,
                              fmt::format("cannot read {}: {}", path, std::strerror(errno)));
              return file;
          }(),
          path) {}

CheckpointReader::CheckpointReader(Descriptor file, std::string name)
    : file_(std::move(file)), name_(std::move(name)) {
    struct stat is {};
    if (::fstat(file_.get(), &is) != 0 || !S_ISREG(is.st_mode)) refuse("it is no file");
    Header header;
    take(std::as_writable_bytes(std::span(&header, 1)), "its header");
    if (header.magic != kMagic) refuse("it is no checkpoint of memory");
    if (header.version != kVersion)
        throw Error(
            ErrorCode::kVersionMismatch,
            fmt::format("{}: a checkpoint of version {}, and this heddle reads version {}: use the one "
                        "that wrote it",
                        name_, header.version, kVersion));
    if (header.sum != sum_of(header) || header.block != kBlock || header.table_size > kLargestTable)
        refuse("its header (bytes 0 to 39) was altered");
    const auto size = static_cast<uint64_t>(is.st_size);
    if (size != header.file_size)
        refuse(fmt::format("it has {} bytes and was written with {}: it was {}", size, header.file_size,
                           size < header.file_size ? "cut" : "lengthened"));
    if (header.table_size > size - sizeof header) refuse("its table is longer than the file");
    std::vector<std::byte> rows(header.table_size);
    take(rows, "its table");
    if (crc32c(rows) != header.table_sum)
        refuse(fmt::format("its table (bytes {} to {}) was altered", sizeof header,
                           sizeof header + header.table_size - 1));
    TableReader reader(rows);
    fields(reader, table_);
    if (!reader.whole()) refuse("its table is none");
    if (const std::string problem = problem_of(table_); !problem.empty()) refuse(problem);
    if (content_size(table_) != size - sizeof header - header.table_size)
        refuse("its table tells of other allocations than those that it has");
}

void CheckpointReader::refuse(const std::string& problem) const {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} cannot be restored: {}; use another checkpoint", name_, problem));
}

void CheckpointReader::take(std::span<std::byte> to, const char* what) {
    while (!to.empty()) {
        const ssize_t got = ::pread(file_.get(), to.data(), to.size(), static_cast<off_t>(offset_));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            throw Error(ErrorCode::kSystem,
                        fmt::format("cannot read {} of {}: {}", what, name_, std::strerror(errno)));
        if (got == 0) refuse(fmt::format("it ends at byte {}, within {}", offset_, what));
        offset_ += static_cast<uint64_t>(got);
        to = to.subspan(static_cast<size_t>(got));
    }
}

void CheckpointReader::read(std::span<std::byte> piece) {
    while (!piece.empty()) {
        const auto block = piece.first(std::min<size_t>(kBlock, piece.size()));
        const uint64_t begin = offset_;
        uint32_t sum = 0;
        take(block, "a block");
        take(std::as_writable_bytes(std::span(&sum, 1)), "a block");
        if (sum != sum_of_block(block, blocks_++))
            refuse(fmt::format("block {} (bytes {} to {}) was altered", blocks_ - 1, begin, offset_ - 1));
        piece = piece.subspan(block.size());
    }
}

}  // namespace heddle::memory
