#include "trace/work_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/settings.hpp"
#include "base/signals_blocked.hpp"
#include "heddle/error.hpp"

namespace heddle::trace {
namespace {

constexpr Client kThisProcess{1};
constexpr auto kPeriod = std::chrono::milliseconds(50);
std::atomic<uint64_t> last_id{0};

Time now() {
    return SteadyClock().now();
}

Header header_of(const Machine& machine) {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    return {machine.summary(), machine.places(), now().time_since_epoch().count(),
            std::chrono::duration_cast<Nanoseconds>(wall).count()};
}

/// "%p" is the process, "%%" a %.
std::string file_name(const std::string& pattern) {
    std::string name;
    for (size_t i = 0; i < pattern.size(); ++i) {
        const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
        if (next == 'p') name += std::to_string(::getpid());
        if (next == '%') name += '%';
        if (next == 'p' || next == '%')
            ++i;
        else
            name += pattern[i];
    }
    return name;
}

}  // namespace

/// The calling thread's ring, given back when the thread ends.
class WorkLog::OfThread {
  public:
    ~OfThread() { leave(); }
    void leave() const {
        if (ring != nullptr) ring->taken.store(false, std::memory_order_release);
    }
    uint64_t log = 0;
    std::shared_ptr<Ring> ring;  // the log may be gone before the thread
};

WorkLog::WorkLog(const std::string& path, const Machine& machine, const std::string& program)
    : id_(++last_id), pid_(::getpid()), cpus_(machine.cpus()), writer_(path, header_of(machine)) {
    full_ = writer_.write({0, Joined{kThisProcess, pid_, program}}) == Written::kTruncated;
    writer_.flush();
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
}

WorkLog::~WorkLog() {
    finish();
}

WorkLog* WorkLog::of_process(const Machine& machine) {
    // It outlives threads that may still note while the process exits.
    struct Holder {
        WorkLog* log = nullptr;
        explicit Holder(const Machine& its_machine) {
            const std::string pattern = setting("HEDDLE_TRACE");
            if (pattern.empty()) return;
            std::string program = setting("HEDDLE_NAME");
            if (program.empty()) program = program_invocation_short_name;
            try {
                log = new WorkLog(file_name(pattern), its_machine, program);
            } catch (const Error& error) {
                throw Error(error.code(), fmt::format("HEDDLE_TRACE: {}", error.what()));
            }
        }
        ~Holder() {
            if (log != nullptr) log->finish();
        }
    };
    static const Holder holder(machine);
    return holder.log != nullptr && holder.log->pid_ == ::getpid() ? holder.log : nullptr;
}

void WorkLog::note(std::string_view kind, const NotedWork& work) noexcept {
    if (Ring* ring = ring_for(kind))
        ring->work.push(work);
    else
        without_ring_.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<WorkLog::Lane> WorkLog::open_lane(const std::string& row) {
    const std::lock_guard guard(mutex_);
    if (rings_.size() == kMostRings) return nullptr;
    auto ring = std::make_shared<Ring>();
    ring->row = row;
    ring->is_lane = true;
    rings_.push_back(ring);
    // release: what was noted before it was left is popped before it goes.
    return {ring.get(), [ring](Lane*) { ring->taken.store(false, std::memory_order_release); }};
}

void WorkLog::note(const std::shared_ptr<Lane>& lane, const NotedWork& work) noexcept {
    if (lane != nullptr)
        lane->work.push(work);
    else
        without_ring_.fetch_add(1, std::memory_order_relaxed);
}

WorkLog::Ring* WorkLog::ring_for(std::string_view kind) noexcept {
    static thread_local OfThread own;
    if (own.log == id_) return own.ring.get();
    try {
        const std::lock_guard guard(mutex_);
        auto ring = open_ring(kind);
        own.leave();
        own.log = id_;
        own.ring = std::move(ring);
        return own.ring.get();
    } catch (...) {  // no memory, or too many threads
        return nullptr;
    }
}

/// A ring that a thread of the same kind has left, or a new one. The first thread has its own for good.
std::shared_ptr<WorkLog::Ring> WorkLog::open_ring(std::string_view kind) {
    const bool main = ::gettid() == pid_;
    int number = 1;
    for (const auto& ring : rings_) {
        if (main || ring->kind != kind) continue;
        ++number;
        if (ring->taken.load(std::memory_order_acquire)) continue;
        ring->taken.store(true, std::memory_order_relaxed);
        return ring;
    }
    if (rings_.size() == kMostRings) throw std::bad_alloc();
    auto ring = std::make_shared<Ring>();
    ring->row = main ? "main" : fmt::format("{} {}", kind, number);
    ring->kind = main ? "" : kind;
    rings_.push_back(ring);
    return ring;
}

void WorkLog::run() {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, kPeriod, [this] { return stop_; })) drain();
}

void WorkLog::flush() noexcept {
    const std::lock_guard guard(mutex_);
    drain();
}

void WorkLog::drain() {
    if (finished_) return;
    NotedWork work;
    uint64_t dropped = without_ring_.exchange(0, std::memory_order_relaxed);
    try {
        for (size_t i = 0; i < rings_.size();) {
            const auto& ring = rings_[i];
            const bool is_left = ring->is_lane && !ring->taken.load(std::memory_order_acquire);
            dropped += ring->work.take_dropped();
            while (ring->work.pop(work)) {
                if (full_) continue;
                const auto at = [&](int64_t ns) { return writer_.at(Time(Nanoseconds(ns))); };
                Span span{kThisProcess,
                          work.row != nullptr ? work.row : ring->row,
                          work.name,
                          at(work.begin_ns),
                          work.kind,
                          {},
                          -1};
                if (work.task > 0) span.task = work.task;
                if (cpus_.contains(work.cpu)) span.cpu = work.cpu;
                full_ = writer_.write({at(work.end_ns), std::move(span)}) == Written::kTruncated;
            }
            if (is_left)
                rings_.erase(rings_.begin() + static_cast<ptrdiff_t>(i));
            else
                ++i;
        }
        if (dropped > 0 && !full_)
            full_ = writer_.write({writer_.at(now()), Dropped{static_cast<int64_t>(dropped)}}) ==
                    Written::kTruncated;
        writer_.flush();
    } catch (...) {
        // The disk is full, or there is no memory: what is there stays readable, and there is no more of it.
        full_ = true;
    }
}

void WorkLog::finish() noexcept {
    if (::getpid() != pid_) return;
    std::unique_lock lock(mutex_);
    if (finished_) return;
    drain();
    finished_ = true;
    stop_ = true;
    stopped_.notify_all();
    try {
        const int64_t end_ns = writer_.at(now());
        if (!full_) (void)writer_.write({end_ns, Left{kThisProcess, Departure::kExit}});
        writer_.finish(end_ns);
    } catch (...) {
        full_ = true;
    }
    lock.unlock();
    thread_.join();
}

}  // namespace heddle::trace
