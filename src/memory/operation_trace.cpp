#include "memory/operation_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "base/clock.hpp"
#include "base/settings.hpp"
#include "heddle/machine.hpp"

namespace heddle::memory {
namespace {

using trace::SpanKind;

/// Names live until they are written; servers and clients may be gone by then. So there is a bound.
const char* kept(const std::string& name) {
    constexpr size_t kMost = 4096;
    static auto& mutex = *new std::mutex;
    static auto& names = *new std::set<std::string>;
    const std::lock_guard guard(mutex);
    if (names.size() >= kMost && !names.contains(name)) return "others";
    return names.insert(name).first->c_str();
}

std::string name_of(const Operation& operation) {
    struct Namer {
        std::string operator()(const op::Allocate& /*one*/) const { return "allocate"; }
        std::string operator()(const op::Release& /*one*/) const { return "release"; }
        std::string operator()(const op::GetConst& one) const { return of("get_const", one.global); }
        std::string operator()(const op::GetMutable& one) const { return of("get_mutable", one.global); }
        std::string operator()(const op::GetExclusive& one) const { return of("get_exclusive", one.global); }
        std::string operator()(const op::Put& one) const { return of("put", one.global); }
        static std::string of(const char* what, const GlobalRange& global) {
            return fmt::format("{} of {}", what, global.data.value);
        }
    };
    return std::visit(Namer{}, operation);
}

const char* awaited(const Note& note) {
    switch (note.what) {
        case Note::What::kWaitsForConsent:
            return kept(fmt::format("consent of rank {}", note.rank));
        case Note::What::kWaitsForTag:
            return "a tag";
        case Note::What::kWaitsForReaders:
            return "readers";
        case Note::What::kWaitsForPut:
            return "an earlier put";
        case Note::What::kWaitsForCopy:
            return "a copy under way";
        case Note::What::kMoves:
            return "its turn to move";
        case Note::What::kMisses:
        case Note::What::kEvicts:
            break;
    }
    return nullptr;
}

std::string name_of(const Transfer& transfer, const std::string& kind) {
    if (transfer.direction == Transfer::Direction::kWithinCache) return "copy within the cache";
    const bool reads = transfer.direction == Transfer::Direction::kFromSegment;
    const Rank first = transfer.parts.empty() ? 0 : transfer.parts.front().rank;
    const bool several =
        std::ranges::any_of(transfer.parts, [&](const Transfer::Part& part) { return part.rank != first; });
    return fmt::format("{} {} of {}", reads ? "read" : "write", kind,
                       several ? "several ranks" : fmt::format("rank {}", first));
}

}  // namespace

std::unique_ptr<OperationTrace> OperationTrace::open() {
    if (setting("HEDDLE_TRACE").empty()) return nullptr;  // without a look at the machine
    trace::WorkLog* const log = trace::WorkLog::of_process(Machine::detect());
    return log == nullptr ? nullptr : std::make_unique<OperationTrace>(*log);
}

OperationTrace::OperationTrace(trace::WorkLog& log) : log_(log), lane_(log.open_lane("memory")) {}

int64_t OperationTrace::now_ns() noexcept {
    return SteadyClock().now().time_since_epoch().count();
}

void OperationTrace::joined(ClientId client, const std::string& name) noexcept {
    try {
        clients_[client].row =
            fmt::format("memory client {}{}", client, name.empty() ? "" : fmt::format(" {}", name));
    } catch (...) {
        // Its rows are missing.
    }
}

void OperationTrace::write(const Running& of, const char* name, int64_t begin_ns, int64_t end_ns,
                           SpanKind kind) noexcept {
    if (of.row == nullptr) return log_.note(std::shared_ptr<trace::WorkLog::Lane>(), {});
    log_.note(lane_, {name, begin_ns, end_ns, 0, -1, kind, of.row});
}

void OperationTrace::began(ClientId client, Ticket ticket, const Operation& operation) noexcept {
    try {
        Running running;
        running.client = client;
        running.name = name_of(operation);
        running.began_ns = step_ns_;
        const auto found = clients_.find(client);
        if (found != clients_.end()) {
            std::vector<bool>& taken = found->second.taken;
            const auto free = std::find(taken.begin(), taken.end(), false);
            running.place = static_cast<size_t>(free - taken.begin());
            if (running.place < kMostRows) {
                const std::string number = running.place == 0 ? "" : fmt::format(" {}", running.place + 1);
                running.row = kept(found->second.row + number);
                if (free == taken.end())
                    taken.push_back(true);
                else
                    *free = true;
            }
        }
        running_.insert_or_assign(ticket, std::move(running));
    } catch (...) {
        // It is missing.
    }
}

void OperationTrace::end_wait(Running& running, int64_t at_ns) noexcept {
    if (running.waits_for != nullptr && running.waits_since_ns < at_ns)
        write(running, running.waits_for, running.waits_since_ns, at_ns, SpanKind::kWait);
    running.waits_for = nullptr;
}

void OperationTrace::note(Running& running, const Note& note, int64_t at_ns) {
    if (note.what == Note::What::kMisses) {
        running.misses = true;
        return;
    }
    end_wait(running, step_ns_);
    if (note.what == Note::What::kEvicts) return write(running, "evict", step_ns_, at_ns, SpanKind::kWork);
    if (note.what == Note::What::kMoves) moving_.insert_or_assign(note.access, note.ticket);
    running.waits_for = awaited(note);
    running.waits_since_ns = at_ns;
}

void OperationTrace::noted(const std::vector<Note>& notes) noexcept {
    if (notes.empty()) return;
    const int64_t now = now_ns();
    try {
        for (const Note& one : notes) {
            const auto found = running_.find(one.ticket);
            if (found != running_.end()) note(found->second, one, now);
        }
    } catch (...) {
        // The rest of them is missing.
    }
}

void OperationTrace::moved(const Transfer& transfer, const std::string& kind, int64_t begin_ns,
                           int64_t end_ns) noexcept {
    const auto ticket = moving_.find(transfer.access);
    if (ticket == moving_.end()) return;
    const auto found = running_.find(ticket->second);
    moving_.erase(ticket);
    if (found == running_.end()) return;
    try {
        end_wait(found->second, begin_ns);
        write(found->second, kept(name_of(transfer, kind)), begin_ns, end_ns, SpanKind::kWork);
    } catch (...) {
        // It is missing.
    }
}

void OperationTrace::ended(Ticket ticket) noexcept {
    const auto found = running_.find(ticket);
    if (found == running_.end()) return;
    Running& running = found->second;
    const int64_t now = now_ns();
    end_wait(running, step_ns_);
    const auto client = clients_.find(running.client);
    if (client != clients_.end() && running.row != nullptr) client->second.taken[running.place] = false;
    try {
        if (running.misses) running.name += ", a miss";
        write(running, kept(running.name), running.began_ns, now, SpanKind::kWork);
    } catch (...) {
        // It is missing.
    }
    running_.erase(found);
}

}  // namespace heddle::memory
