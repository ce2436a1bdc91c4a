// TraceWriter: streams events to a file, one JSON object a line (docs/TRACE.md).
//
// One thread uses a writer. Lines collect in memory and go to the file whole, when 64 KiB are full, at
// flush() and in the destructor. After a crash the file holds what was flushed, at worst with a torn last
// line, which the reader accepts. The file never grows beyond its bound: where the next event would not fit,
// the mark "truncated" is written in its place and the writer takes no more.
#pragma once

#include <unistd.h>

#include <string>

#include "base/clock.hpp"
#include "trace/trace.hpp"

namespace heddle::trace {

struct WriterOptions {
    size_t max_bytes = size_t{256} << 20;
};

enum class Written { kYes, kTruncated };

class TraceWriter {
  public:
    /// Longer texts are cut, so that no line is too long for the reader.
    static constexpr size_t kMaxText = 1024;

    /// Creates the file, or empties it, and writes the header. Throws kSystem where that fails and
    /// kInvalidArgument where the bound has no room for the header.
    TraceWriter(const std::string& path, const Header& header, const WriterOptions& options = {});
    ~TraceWriter();
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;

    /// The nanoseconds of the trace that a moment of CLOCK_MONOTONIC is; one before its start is its start.
    [[nodiscard]] int64_t at(Time moment) const;

    /// Appends an event; kTruncated where the bound was reached, now or earlier. Events may come out of
    /// order. Throws kSystem where the disk is full, once: then the writer takes no more.
    [[nodiscard]] Written write(const Event& event);
    /// Hands every line to the system. Throws kSystem.
    void flush();
    /// Writes the mark "end", which says how long the trace is, and flushes. Later events are refused.
    void finish(int64_t at_ns);

  private:
    [[nodiscard]] bool append(const std::string& line, size_t reserve);

    std::string path_;
    int fd_ = -1;
    bool is_locked_ = false;
    const pid_t process_ = ::getpid();
    int64_t start_ns_ = 0;
    size_t max_bytes_ = 0;
    size_t bytes_ = 0;  // of the file and the buffer together
    bool closed_ = false;
    std::string buffer_;
};

}  // namespace heddle::trace
