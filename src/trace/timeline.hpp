// Timeline: a trace turned from events into histories: for each CPU who used it from when to when, for each
// client how many CPUs it held, wanted and waited for. Every writer and picture starts from it.
//
// A value, made once and then only read; it keeps no reference to the trace. What a trace leaves out is
// filled in here and nowhere else: a client that was never seen joining is "client N", and one that left
// holds nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace heddle::trace {

/// Index into Timeline::clients, or kNobody.
using Who = int;
inline constexpr Who kNobody = -1;

/// From begin to end one client used the CPU, or nobody did though it has an owner.
struct Slice {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    Who user = kNobody;
    Who owner = kNobody;
    int component = -1;  ///< index into Timeline::components, or -1
};

/// From this moment on the value is this.
struct Step {
    int64_t at_ns = 0;
    int64_t value = 0;
};

struct CpuHistory {
    CpuPlace place;
    std::vector<Slice> slices;  ///< by time, none overlaps another, none is empty
    std::string label = {};     ///< of its row; empty: "CPU " and its number
};

struct ClientHistory {
    Client id;
    int64_t pid = 0;
    std::string name;
    int64_t joined_ns = 0;
    std::optional<int64_t> left_ns;
    Departure how = Departure::kExit;  ///< where it left
    // Before the first step each is 0; no two steps share a moment.
    std::vector<Step> held;
    std::vector<Step> demand;
    std::vector<Step> waiting;
    std::vector<Step> paused;  ///< tasks of its, from their pause until they go on
};

struct Moment {
    int64_t at_ns = 0;
    std::string text;
};

struct Work {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    Who client = kNobody;
    int lane = 0;  ///< index into Timeline::lanes
    std::string name;
    SpanKind kind = SpanKind::kWork;
    std::optional<int64_t> task = {};
    int cpu = -1;
    /// With kPaused: when the task went on, in another piece; the end of the trace where it never did.
    int64_t resumed_ns = 0;
};

struct Lane {
    Who client = kNobody;
    std::string name;
};

struct Timeline {
    /// Of a timeline by_task(): with more names its accounts would be a heap.
    static constexpr size_t kMostTaskNames = 4096;

    explicit Timeline(const Trace& trace);

    std::string machine;
    std::optional<int64_t> wall_ns;
    int64_t end_ns = 0;
    std::vector<CpuHistory> cpus;        ///< by package, NUMA node, core, CPU
    std::vector<ClientHistory> clients;  ///< in the order in which the trace names them
    std::vector<std::string> components;
    std::vector<Moment> marks;  ///< without the mark "end"
    std::vector<Lane> lanes;
    std::vector<Work> work;  ///< by begin; of the same begin the longest first
    int64_t dropped = 0;     ///< pieces of work that are missing
    bool truncated = false;
    bool of_tasks = false;  ///< by_task(): rows are workers and clients are names of tasks
};

}  // namespace heddle::trace
