// Any bytes as the file of a checkpoint: as they are, or behind a header whose sums are right, so that the
// table and the blocks are reached. The reader throws heddle::Error, or gives what it says is there.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/crc32c.hpp"
#include "fuzz/fuzz.hpp"
#include "heddle/error.hpp"
#include "memory/checkpoint_file.hpp"

using namespace heddle;
using namespace heddle::memory;
using heddle::test::require;

namespace {

/// As docs/CHECKPOINT.md has it.
std::vector<std::byte> with_header(std::span<const std::byte> table, std::span<const std::byte> content) {
    std::vector<std::byte> file(40);
    const auto put = [&](size_t at, auto value) { std::memcpy(file.data() + at, &value, sizeof value); };
    std::memcpy(file.data(), "HDLMEMCP", 8);
    put(8, uint32_t{1});
    put(12, uint32_t{256 << 10});
    put(16, uint64_t{table.size()});
    put(24, uint64_t{40 + table.size() + content.size()});
    put(32, crc32c(table));
    put(36, crc32c({file.data(), 36}));
    file.insert(file.end(), table.begin(), table.end());
    file.insert(file.end(), content.begin(), content.end());
    return file;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), size);
    std::vector<std::byte> file(input.begin(), input.end());
    if (size >= 3 && data[0] == 'T') {
        const size_t table = std::min(size_t{data[1]} | size_t{data[2]} << 8, size - 3);
        file = with_header(input.subspan(3, table), input.subspan(3 + table));
    }
    Descriptor there(::memfd_create("checkpoint", MFD_CLOEXEC));
    require(::write(there.get(), file.data(), file.size()) == static_cast<ssize_t>(file.size()),
            "a file is made");
    try {
        CheckpointReader reader(std::move(there), "input");
        uint64_t all = 0;
        for (const auto& one : reader.table().allocations) all += one.size;
        require(all <= file.size(), "there is no more than the file has");
        std::vector<std::byte> piece;
        for (const auto& one : reader.table().allocations) {
            piece.resize(one.size);
            reader.read(piece);
        }
    } catch (const Error&) {
        return 0;
    }
    return 0;
}
