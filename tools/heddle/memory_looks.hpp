// MemoryLooks: what the memory server of the usual place does, for `heddle top`.
//
// A thread of its own asks the server, so that one that is stopped stops nobody: what it said last is shown.
// One thread calls.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

namespace heddle::memory {
class IpcConnection;
}

namespace heddle::tool {

class MemoryLooks {
  public:
    MemoryLooks();
    ~MemoryLooks();
    MemoryLooks(const MemoryLooks&) = delete;
    MemoryLooks& operator=(const MemoryLooks&) = delete;

    /// Asks anew, and waits a moment for the answer. Lines of text; "" where no server listens.
    [[nodiscard]] std::string look();

  private:
    struct Look {
        std::chrono::steady_clock::time_point at;
        nlohmann::json status;
    };
    void run();
    [[nodiscard]] std::optional<nlohmann::json> ask();

    std::mutex mutex_;
    std::condition_variable changed_;
    bool wanted_ = false, stopping_ = false;
    std::optional<Look> now_, before_;
    /// Its last pointer may be let go by another thread than the one that asks, which ends what it asks.
    std::shared_ptr<memory::IpcConnection> connection_;
    std::thread thread_;
};

/// What a server has done, and how much of it a second since the look before, if there was one: a line for
/// the server, one for each cache and one for each link.
[[nodiscard]] std::string memory_text(const nlohmann::json& status, const nlohmann::json* before,
                                      double seconds);

}  // namespace heddle::tool
