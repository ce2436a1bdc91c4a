// Recorder: watches an arbiter and writes what it decides to a trace file, in a thread of its own.
//
// Owned by one thread. finish() (or destruction) ends the trace properly; a killed recorder leaves a file
// that readers accept. Waits in the kernel: it costs nothing while nothing changes.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/os.hpp"

namespace heddle::tool {

class Recorder {
  public:
    /// Connects and starts. Throws kUnavailable where no arbiter listens, kSystem where the file cannot be
    /// written.
    Recorder(const std::string& arbiter_path, const std::string& file);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Ends the trace. Throws what went wrong while recording: the arbiter ended, the disk is full.
    void finish();
    /// False once recording ended by itself (see finish()).
    [[nodiscard]] bool recording() const { return recording_; }
    /// There was a client so far.
    [[nodiscard]] bool saw_clients() const { return saw_clients_; }

  private:
    void record(const std::string& arbiter_path, const std::string& file, std::atomic<int>& started);

    std::atomic<bool> stop_ = false;
    std::atomic<bool> recording_ = true;
    std::atomic<bool> saw_clients_ = false;
    std::exception_ptr failure_;
    Descriptor wake_;
    std::thread thread_;
};

}  // namespace heddle::tool
