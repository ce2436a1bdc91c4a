// OperationTrace: the operations of one server that do not end at once, in the process's trace (HEDDLE_TRACE,
// docs/TRACE.md, Memory): which ones miss, whom they wait for, what had to go for them, and how long their
// bytes take. A row for each client, and one more for each operation that it has under way beside others.
//
// Its server owns it, and calls it under its lock. Where there is no memory for what it is to note, that is
// missing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/caching_agent.hpp"
#include "trace/work_log.hpp"

namespace heddle::memory {

class OperationTrace {
  public:
    /// More operations of one client at once are counted as dropped.
    static constexpr size_t kMostRows = 64;

    /// Null where nothing is traced. Throws as WorkLog::of_process().
    [[nodiscard]] static std::unique_ptr<OperationTrace> open();
    explicit OperationTrace(trace::WorkLog& log);

    [[nodiscard]] static int64_t now_ns() noexcept;
    /// `name` may be empty.
    void joined(ClientId client, const std::string& name) noexcept;
    void left(ClientId client) noexcept { clients_.erase(client); }

    /// The state machine makes a step from now on.
    void step() noexcept { step_ns_ = now_ns(); }
    /// In this step.
    void began(ClientId client, Ticket ticket, const Operation& operation) noexcept;
    void noted(const std::vector<Note>& notes) noexcept;
    /// Its bytes. `kind` of segment.
    void moved(const Transfer& transfer, const std::string& kind, int64_t begin_ns, int64_t end_ns) noexcept;
    /// Nothing where it did not begin.
    void ended(Ticket ticket) noexcept;

  private:
    struct Client {
        std::string row;
        std::vector<bool> taken = {};  ///< rows
    };
    struct Running {
        ClientId client = 0;
        size_t place = 0;           ///< among the client's rows
        const char* row = nullptr;  ///< null: there are too many
        std::string name;
        bool misses = false;
        int64_t began_ns = 0;
        const char* waits_for = nullptr;
        int64_t waits_since_ns = 0;
    };

    void write(const Running& of, const char* name, int64_t begin_ns, int64_t end_ns,
               trace::SpanKind kind) noexcept;
    void end_wait(Running& running, int64_t at_ns) noexcept;
    void note(Running& running, const Note& note, int64_t at_ns);

    trace::WorkLog& log_;
    std::shared_ptr<trace::WorkLog::Lane> lane_;
    int64_t step_ns_ = 0;
    std::map<ClientId, Client> clients_;
    std::unordered_map<Ticket, Running> running_;
    std::unordered_map<uint64_t, Ticket> moving_;  // by access
};

}  // namespace heddle::memory
