// Trace: who had which core when, as a list of events. What the recorder writes and every picture is made
// from.
//
// Plain values, owned by whoever holds them. Times are nanoseconds since the trace began, which is the moment
// `start_ns` of CLOCK_MONOTONIC, so that events of several processes of one machine share one time axis. The
// form on disk is docs/TRACE.md; `TraceWriter` writes it, `read` reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.hpp"
#include "heddle/machine.hpp"

namespace heddle::trace {

/// A program under management, numbered by whoever records; a number is used once in a trace.
struct ClientTag;
using Client = Id<ClientTag>;

/// No time of a trace is above this one (31 years); it keeps sums of times inside 64 bits.
inline constexpr int64_t kMaxTime_ns = 1'000'000'000'000'000'000;

struct Header {
    std::string machine;             ///< in one line, as Machine::summary says it
    std::vector<CpuPlace> cpus;      ///< every CPU that events may name
    int64_t start_ns = 0;            ///< CLOCK_MONOTONIC at time 0 of the trace
    std::optional<int64_t> wall_ns;  ///< nanoseconds since 1970 (UTC) at time 0
};

struct Joined {
    Client client;
    int64_t pid = 0;
    std::string name;
};

enum class Departure { kExit, kKilled, kDetached };

/// A client that left holds no CPU, wants none and waits for none from then on.
struct Left {
    Client client;
    Departure how = Departure::kExit;
};

/// From now on `user` uses the CPU, until the next CpuChanged of it.
struct CpuChanged {
    int cpu = 0;
    std::optional<Client> user;   ///< nobody: the CPU is idle
    std::optional<Client> owner;  ///< who may claim it back; nobody where the policy has no owners
    std::string component;        ///< the runtime inside the user, or empty
};

/// How many CPUs the client can use.
struct DemandChanged {
    Client client;
    int64_t cpus = 0;
};

/// How many CPUs the client has asked for and not been given yet.
struct WaitingChanged {
    Client client;
    int64_t cpus = 0;
};

/// A moment worth a line across the picture.
struct Mark {
    std::string text;
};
/// The mark of the moment when recording stopped, and that of a file that reached its bound.
inline constexpr const char* kEndMark = "end";
inline constexpr const char* kTruncatedMark = "truncated";
/// The mark that a Dropped is in a file.
inline constexpr const char* kDroppedMark = "dropped";

/// Pieces of work that were not recorded, because whoever wrote them down did not keep up.
struct Dropped {
    int64_t pieces = 0;
};

enum class SpanKind : uint8_t {
    kWork,
    kPaused,  ///< work that did not end: its task was paused, and may go on in another span
    kWait,    ///< no work: the lane's thread waits, and what nests in it is what it does meanwhile
};

/// A piece of work: the event's time is its end. Spans of one lane follow each other or nest.
struct Span {
    Client client;
    std::string lane;  ///< the thread or worker it ran on
    std::string name;
    int64_t begin_ns = 0;
    SpanKind kind = SpanKind::kWork;
    std::optional<int64_t> task = {};  ///< the client's number for the task whose piece it is
    int cpu = -1;                      ///< on which it began, or -1
};

struct Event {
    int64_t at_ns = 0;
    std::variant<Joined, Left, CpuChanged, DemandChanged, WaitingChanged, Mark, Dropped, Span> what;
};

struct Trace {
    Header header;
    std::vector<Event> events;          ///< by ascending time
    std::vector<std::string> warnings;  ///< what the reader accepted but a person should know, one line each
};

}  // namespace heddle::trace
