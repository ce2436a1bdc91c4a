#include "trace/writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "heddle/error.hpp"
#include "trace/escape.hpp"

namespace heddle::trace {
namespace {

constexpr size_t kFlushBytes = size_t{64} << 10;

std::string text(const std::string& raw) {
    return json_string(raw, TraceWriter::kMaxText);
}

std::string header_line(const Header& header) {
    std::string line = fmt::format(R"({{"heddle_trace":1,"machine":{},"start_ns":{})", text(header.machine),
                                   header.start_ns);
    if (header.wall_ns) line += fmt::format(R"(,"wall_ns":{})", *header.wall_ns);
    line += R"(,"cpus":[)";
    for (const CpuPlace& place : header.cpus) {
        if (&place != &header.cpus.front()) line += ',';
        line += fmt::format("[{},{},{},{}]", place.cpu, place.core, place.package, place.numa);
    }
    return line + "]}\n";
}

const char* word(Departure how) {
    switch (how) {
        case Departure::kKilled:
            return "killed";
        case Departure::kDetached:
            return "detached";
        case Departure::kExit:
            break;
    }
    return "exit";
}

// Each overload gives what follows the time in a line.
std::string fields(const Joined& e) {
    return fmt::format(R"("e":"join","c":{},"pid":{},"name":{})", e.client.value, e.pid, text(e.name));
}
std::string fields(const Left& e) {
    return fmt::format(R"("e":"left","c":{},"how":"{}")", e.client.value, word(e.how));
}
std::string fields(const CpuChanged& e) {
    std::string line = fmt::format(R"("e":"cpu","cpu":{})", e.cpu);
    if (e.user) line += fmt::format(R"(,"c":{})", e.user->value);
    if (e.owner) line += fmt::format(R"(,"o":{})", e.owner->value);
    if (!e.component.empty()) line += fmt::format(R"(,"part":{})", text(e.component));
    return line;
}
std::string fields(const DemandChanged& e) {
    return fmt::format(R"("e":"want","c":{},"n":{})", e.client.value, e.cpus);
}
std::string fields(const WaitingChanged& e) {
    return fmt::format(R"("e":"wait","c":{},"n":{})", e.client.value, e.cpus);
}
std::string fields(const Mark& e) {
    return fmt::format(R"("e":"mark","text":{})", text(e.text));
}
std::string fields(const Dropped& e) {
    return fmt::format(R"("e":"mark","text":"{}","n":{})", kDroppedMark, e.pieces);
}
std::string fields(const Span& e) {
    std::string line = fmt::format(R"("e":"span","c":{},"lane":{},"name":{},"b":{})", e.client.value,
                                   text(e.lane), text(e.name), e.begin_ns);
    if (e.kind != SpanKind::kWork)
        line += fmt::format(R"(,"k":"{}")", e.kind == SpanKind::kPaused ? "paused" : "wait");
    if (e.task) line += fmt::format(R"(,"task":{})", *e.task);
    if (e.cpu >= 0) line += fmt::format(R"(,"cpu":{})", e.cpu);
    return line;
}

std::string event_line(const Event& event) {
    return fmt::format("{{\"t\":{},{}}}\n", event.at_ns,
                       std::visit([](const auto& what) { return fields(what); }, event.what));
}

// Room kept for the longest line that can follow a full file: its last mark.
constexpr size_t kReserve = sizeof(R"({"t":1000000000000000000,"e":"mark","text":"truncated"})") + 1;

}  // namespace

TraceWriter::TraceWriter(const std::string& path, const Header& header, const WriterOptions& options)
    : path_(path), start_ns_(header.start_ns), max_bytes_(options.max_bytes) {
    if (!append(header_line(header), kReserve))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{}: a trace bounded to {} bytes has no room for its header of {} CPUs", path,
                                max_bytes_, header.cpus.size()));
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0)
        throw Error(ErrorCode::kSystem, fmt::format("{}: cannot write the trace: {}", path, strerror(errno)));
    try {
        // Before anything is lost that another one has written. A pipe or a terminal is nobody's alone.
        struct stat status {};
        is_locked_ = fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
        if (is_locked_ && flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            throw Error(ErrorCode::kSystem,
                        fmt::format("{}: another process writes its trace there; %p in the name of "
                                    "HEDDLE_TRACE stands for the pid",
                                    path));
        if (is_locked_) (void)!ftruncate(fd_, 0);
        flush();
    } catch (...) {
        close(fd_);
        throw;
    }
}

TraceWriter::~TraceWriter() {
    try {
        flush();
    } catch (const Error&) {
        // A destructor cannot report it; who cares for the last lines calls flush() or finish() before.
        buffer_.clear();
    }
    // A forked child may have the file open, too.
    if (is_locked_ && process_ == getpid()) (void)flock(fd_, LOCK_UN);
    close(fd_);
}

int64_t TraceWriter::at(Time moment) const {
    return std::clamp<int64_t>(moment.time_since_epoch().count() - start_ns_, 0, kMaxTime_ns);
}

Written TraceWriter::write(const Event& event) {
    if (closed_) return Written::kTruncated;
    if (append(event_line(event), kReserve)) {
        if (buffer_.size() >= kFlushBytes) flush();
        return Written::kYes;
    }
    closed_ = true;
    (void)append(event_line({event.at_ns, Mark{kTruncatedMark}}), 0);
    flush();
    return Written::kTruncated;
}

void TraceWriter::flush() {
    size_t done = 0;
    while (done < buffer_.size()) {
        const ssize_t count = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            const int failure = errno;
            closed_ = true;
            buffer_.clear();
            throw Error(ErrorCode::kSystem,
                        fmt::format("{}: cannot write the trace: {}", path_, strerror(failure)));
        }
        done += static_cast<size_t>(count);
    }
    buffer_.clear();
}

void TraceWriter::finish(int64_t at_ns) {
    if (!closed_) (void)append(event_line({at_ns, Mark{kEndMark}}), 0);
    closed_ = true;
    flush();
}

bool TraceWriter::append(const std::string& line, size_t reserve) {
    if (bytes_ + line.size() + reserve > max_bytes_) return false;
    bytes_ += line.size();
    buffer_ += line;
    return true;
}

}  // namespace heddle::trace
