// heddle memory put, get and free: files into the global memory of a memory server and out of it, for scripts
// and between programs that know nothing of it.
//
// Bytes are read into, and written from, memory that is shared with the server: none of them goes through its
// socket.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/new_file.hpp"
#include "base/os.hpp"
#include "byte_size.hpp"
#include "command.hpp"
#include "heddle/memory.hpp"
#include "memory_status.hpp"

namespace heddle::tool {
namespace {

/// What moves in one operation, and so is of one moment.
constexpr uint64_t kPiece = 16 << 20;
constexpr const char* kStandardStream = "-";

[[noreturn]] void cannot_read(const std::string& name, int reason) {
    throw Error(ErrorCode::kSystem, fmt::format("cannot read {}: {}", name, std::strerror(reason)));
}

/// What is to be put. A file is read as it is put; what comes out of a pipe is read at once, as its size is
/// not known before, and so is what the kernel writes when it is read, as in /proc: a file without size.
class Source {
  public:
    /// Throws Error kInvalidArgument for more than `most` bytes, with `where` in the message.
    Source(const std::string& path, uint64_t most, const std::string& where)
        : name_(path == kStandardStream ? "standard input" : path),
          file_(path == kStandardStream ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        struct stat is {};
        if (!file_.valid() || ::fstat(file_.get(), &is) != 0) cannot_read(name_, errno);
        is_file_ = S_ISREG(is.st_mode) && is.st_size > 0 && path != kStandardStream;
        if (is_file_)
            size_ = static_cast<uint64_t>(is.st_size);
        else
            take_in(most);
        if (size_ > most)
            throw Error(
                ErrorCode::kInvalidArgument,
                fmt::format("{} has {} bytes, {}", name_,
                            is_file_ ? fmt::to_string(size_) : fmt::format("more than {}", most), where));
    }

    [[nodiscard]] uint64_t size() const noexcept { return size_; }

    void read(uint64_t offset, std::span<std::byte> to) {
        if (!is_file_) return void(std::memcpy(to.data(), taken_in_.data() + offset, to.size()));
        while (!to.empty()) {
            const ssize_t got = ::pread(file_.get(), to.data(), to.size(), static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) cannot_read(name_, errno);
            if (got == 0)
                throw Error(ErrorCode::kSystem,
                            fmt::format("{} has become shorter while it was read: {} bytes of {} are left",
                                        name_, offset, size_));
            to = to.subspan(static_cast<size_t>(got));
            offset += static_cast<uint64_t>(got);
        }
    }

  private:
    /// Until its end, or until it is too much.
    void take_in(uint64_t most) {
        constexpr size_t kBlock = 1 << 20;
        while (size_ <= most) {
            taken_in_.resize(size_ + kBlock);
            const ssize_t got = ::read(file_.get(), taken_in_.data() + size_, kBlock);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) cannot_read(name_, errno);
            if (got == 0) return;
            size_ += static_cast<uint64_t>(got);
        }
    }

    std::string name_;
    Descriptor file_;
    bool is_file_ = false;
    uint64_t size_ = 0;
    std::vector<std::byte> taken_in_;
};

/// Where what was got goes.
class Sink {
  public:
    explicit Sink(const std::string& path) {
        if (path != kStandardStream) file_.emplace(path);
    }
    void write(std::span<const std::byte> bytes) {
        if (file_)
            file_->write(bytes);
        else
            write_whole(STDOUT_FILENO, bytes, "standard output");
    }
    void keep() {
        if (file_) file_->keep();
    }

  private:
    std::optional<NewFile> file_;
};

/// As "1, 2", for a message.
template <class Row>
std::string ids_of(const std::vector<Row>& rows) {
    std::string ids;
    for (const Row& row : rows) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", row.id.value);
    return ids.empty() ? "none" : ids;
}

template <class Row>
const Row& row_of(const std::vector<Row>& rows, const char* what, uint64_t id) {
    for (const Row& row : rows)
        if (row.id.value == id) return row;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the memory server has no {} {}; it has {}", what, id, ids_of(rows)));
}

struct Target {
    std::string socket;
    std::optional<uint64_t> data;
    std::string offset = "0";
    std::optional<memory::Tag> tag;
};

struct PutOptions : Target {
    std::string file;
    std::optional<uint64_t> segment;
    std::string distribution = memory::DataDescription().distribution;
};

struct GetOptions : Target {
    uint64_t from = 0;
    std::string file = kStandardStream;
    std::string size;
};

memory::SegmentId segment_for(const memory::Inventory& there, std::optional<uint64_t> wanted) {
    if (wanted) return row_of(there.segments, "segment", *wanted).id;
    if (there.segments.size() == 1) return there.segments[0].id;
    throw UsageError(
        fmt::format("--segment tells into which segment a new allocation is to go; the memory server has {}",
                    ids_of(there.segments)));
}

void put_pieces(memory::Client& client, Source& source, memory::DataId data, uint64_t offset,
                std::optional<memory::Tag> tag) {
    if (source.size() == 0) return;
    const memory::CacheId cache = client.create_cache(std::min(source.size(), kPiece));
    for (uint64_t done = 0; done < source.size();) {
        const uint64_t size = std::min(source.size() - done, kPiece);
        const memory::MutableLocalRange own = client.allocate_local(size, cache);
        source.read(done, {own.pointer(), size});
        client.execute_sync(memory::op::Put{own, {data, {offset + done, size}}, tag, true});
        done += size;
    }
}

/// The number of a new allocation that has all of it.
memory::DataId put_anew(memory::Client& client, const memory::Inventory& there, const PutOptions& options) {
    const memory::SegmentId segment = segment_for(there, options.segment);
    const std::vector<uint64_t> free = client.free_bytes(segment);
    const uint64_t room = std::accumulate(free.begin(), free.end(), uint64_t{0});
    Source source(options.file, room, fmt::format("and segment {} has {} free", segment.value, room));
    const memory::DataId data = client.allocate(source.size(), segment, {options.distribution, {}});
    try {
        put_pieces(client, source, data, 0, options.tag);
    } catch (...) {
        client.free(data);
        throw;
    }
    return data;
}

void put(const PutOptions& options) {
    const uint64_t offset = byte_size(options.offset);
    memory::Client client(options.socket);
    const memory::Inventory there = client.inventory();
    if (!options.data) {
        fmt::print("{}\n", put_anew(client, there, options).value);
        return;
    }
    const auto& data = row_of(there.allocations, "allocation", *options.data);
    const uint64_t room = data.size - std::min(data.size, offset);
    Source source(options.file, room,
                  fmt::format("and allocation {} has {} from offset {} on", data.id.value, room, offset));
    put_pieces(client, source, data.id, offset, options.tag);
}

void get(const GetOptions& options) {
    const uint64_t offset = byte_size(options.offset);
    const uint64_t wanted = options.size.empty() ? 0 : byte_size(options.size);
    memory::Client client(options.socket);
    const memory::Inventory there = client.inventory();
    const auto& data = row_of(there.allocations, "allocation", options.from);
    const uint64_t left = data.size - std::min(data.size, offset);
    const uint64_t size = options.size.empty() ? left : wanted;
    if (offset > data.size || size > left)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{} bytes from offset {} on are not in allocation {}, which has {}", size,
                                offset, data.id.value, data.size));
    Sink sink(options.file);
    if (size > 0) {
        const memory::CacheId cache = client.create_cache(std::min(size, kPiece));
        for (uint64_t done = 0; done < size; done += kPiece) {
            const uint64_t piece = std::min(size - done, kPiece);
            const memory::ConstLocalRange copy =
                client.get_const({data.id, {offset + done, piece}}, cache, options.tag);
            sink.write({copy.pointer(), piece});
            client.release(copy);
        }
    }
    sink.keep();
}

void add_common(CLI::App& command, Target& target) {
    command.add_option("--socket", target.socket, "Where the server listens; default: as of serve");
    command.add_option("--offset", target.offset,
                       "Where in the allocation to begin, in bytes, or with K, M, G");
}

}  // namespace

void add_memory_files(CLI::App& memory) {
    // A number without a sign: the parser would take -1 for the largest one.
    const CLI::Validator number(
        [](const std::string& text) {
            const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
            return digits ? std::string() : fmt::format("\"{}\" is no number from 0 on", text);
        },
        "NUMBER");
    const auto written = std::make_shared<PutOptions>();
    CLI::App* const putting = memory.add_subcommand(
        "put", "Put a file into a new allocation, whose number is printed, or into an old one");
    putting->add_option("FILE", written->file, "- is standard input")->required();
    add_common(*putting, *written);
    CLI::Option* const data =
        putting->add_option("--data", written->data, "The allocation to write to")->check(number);
    putting
        ->add_option("--segment", written->segment, "Where to make a new one; default: the only one there is")
        ->check(number)
        ->excludes(data);
    putting->add_option("--distribution", written->distribution, "How to spread a new one over the ranks")
        ->excludes(data);
    putting->get_option("--offset")->needs(data);
    putting->add_option("--tag", written->tag, "Mark what is put with this number")->check(number);
    putting->callback([written] { ask_memory_server([&] { put(*written); }); });

    const auto read = std::make_shared<GetOptions>();
    CLI::App* const getting = memory.add_subcommand("get", "Get an allocation, or a part of it, into a file");
    getting->add_option("DATA", read->from, "The number of the allocation")->required()->check(number);
    getting->add_option("FILE", read->file, "Default: -, which is standard output");
    add_common(*getting, *read);
    getting->add_option("--size", read->size, "How much; default: up to its end");
    getting->add_option("--tag", read->tag, "Wait until it is marked with this number")->check(number);
    getting->callback([read] { ask_memory_server([&] { get(*read); }); });

    const auto freed = std::make_shared<GetOptions>();
    CLI::App* const freeing = memory.add_subcommand("free", "Give an allocation up");
    freeing->add_option("DATA", freed->from, "Its number")->required()->check(number);
    freeing->add_option("--socket", freed->socket, "Where the server listens; default: as of serve");
    freeing->callback(
        [freed] { ask_memory_server([&] { memory::Client(freed->socket).free({freed->from}); }); });
}

}  // namespace heddle::tool
