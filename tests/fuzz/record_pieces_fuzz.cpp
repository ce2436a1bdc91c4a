// Records that come in pieces, as from a socket: they are those that come at once, and what is wrong is told
// with the same line. The first byte is the size of the pieces.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "fuzz/fuzz.hpp"
#include "heddle/error.hpp"
#include "streams/record_streams.hpp"

namespace {

using namespace heddle;           // NOLINT: each name here is of them
using namespace heddle::streams;  // NOLINT

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// All records as text, and what ended them.
std::string told_of(std::FILE* file) {
    std::string all;
    try {
        const auto reader = make_record_reader(std::make_unique<InputText>(file, "fuzz"));
        while (auto record = reader->next()) {
            all += record->text();
            for (const auto& [label, value] : record->fields()) all += value->text();
        }
    } catch (const Error& error) {
        test::require(error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kLimit,
                      error.what());
        all += error.what();
    }
    return all;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2 || size > 4096) return 0;
    const size_t piece = data[0] % 64 + 1;
    ++data;
    --size;
    const File whole(std::tmpfile(), &std::fclose);
    int ends[2];
    // Each piece is a packet, and so a read of its own.
    if (!whole || ::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return 0;
    Descriptor writes(ends[0]);
    const File reads(::fdopen(ends[1], "r"), &std::fclose);
    if (!reads || std::fwrite(data, 1, size, whole.get()) != size) return 0;
    std::rewind(whole.get());
    for (size_t at = 0; at < size; at += piece) {
        const size_t now = std::min(piece, size - at);
        // What does not fit into the socket is left out of this run.
        if (::send(writes.get(), data + at, now, MSG_DONTWAIT) != static_cast<ssize_t>(now)) return 0;
    }
    writes = Descriptor();
    test::require(told_of(whole.get()) == told_of(reads.get()), "records in pieces are those at once");
    return 0;
}
