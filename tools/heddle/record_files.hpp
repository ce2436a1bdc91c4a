// Where the records of `heddle snet run` come from and where they go: files, the process's own streams, TCP.
//
// A place is a path; "-" for stdin or stdout; or "tcp:PORT" or "tcp:HOST:PORT", on 127.0.0.1 where no host is
// told. Input waits there for one that connects, and output connects, for which it tries ten seconds.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "streams/record_streams.hpp"

namespace heddle::tool {

/// Closes what it has opened.
class OpenFile {
  public:
    /// Throws kBadInput for a path that cannot be opened and a place that is none, kUnavailable where nobody
    /// listens.
    static OpenFile for_reading(const std::string& place);
    static OpenFile for_writing(const std::string& place);
    /// Behind what the file has. What TCP brings can be read, too.
    static OpenFile for_appending(const std::string& place);
    OpenFile(OpenFile&& other) noexcept : own_(other.own_), file_(other.file_) { other.own_ = false; }
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    [[nodiscard]] std::FILE* get() const { return file_; }

  private:
    OpenFile(std::FILE* file, bool own) : own_(own), file_(file) {}
    static OpenFile made(std::FILE* file, const std::string& place);
    static OpenFile opened(const std::string& place, const char* mode);
    bool own_;
    std::FILE* file_;
};

/// Writes in blocks; what lies there while nothing more comes is written some milliseconds later. Any thread.
class RecordSink {
  public:
    /// `on_failure` is called, by its thread, where that cannot write.
    RecordSink(const std::string& place, streams::RecordFormat format, std::function<void()> on_failure);
    /// Waits for its thread; writes nothing.
    ~RecordSink();
    RecordSink(const RecordSink&) = delete;
    RecordSink& operator=(const RecordSink&) = delete;

    /// Throw what RecordWriter does, also for what was to be written before.
    void write(const streams::Record& record);
    void flush();
    void terminate();

  private:
    void write_when_idle();

    OpenFile file_;
    std::unique_ptr<streams::RecordWriter> writer_;
    const std::function<void()> on_failure_;
    std::mutex mutex_;
    std::condition_variable wakes_;
    bool pending_ = false, stops_ = false;
    std::thread thread_;  // last: it uses the others
};

}  // namespace heddle::tool
