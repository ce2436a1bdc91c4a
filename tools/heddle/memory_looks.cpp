#include "memory_looks.hpp"

#include <fmt/format.h>

#include <exception>
#include <initializer_list>
#include <utility>

#include "memory/ipc_connection.hpp"
#include "memory_status.hpp"

namespace heddle::tool {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

/// "12.3 MiB".
std::string in_bytes(uint64_t size) {
    if (size < 1024) return fmt::format("{} B", size);
    double scaled = static_cast<double>(size);
    size_t unit = 0;
    for (; scaled >= 1024 && unit < 5; ++unit) scaled /= 1024;
    return fmt::format("{:.1f} {}iB", scaled, "?KMGTP"[unit]);
}

/// The same row at the look before.
const Json* row_before(const Json* before, const char* rows, const Json& row,
                       std::initializer_list<const char*> names) {
    if (before == nullptr) return nullptr;
    for (const Json& other : (*before)[rows]) {
        bool same = true;
        for (const char* const name : names) same = same && other[name] == row[name];
        if (same) return &other;
    }
    return nullptr;
}

/// How much a number of the row has grown.
uint64_t grown(const Json& row, const Json* before, const char* name) {
    const uint64_t now = status_number(row, name);
    return before == nullptr || status_number(*before, name) > now ? 0 : now - status_number(*before, name);
}

std::string cache_line(const Json& cache, const Json* before, double seconds) {
    const uint64_t hits = status_number(cache, "hits") + status_number(cache, "hits_pending");
    const uint64_t gets = hits + status_number(cache, "misses");
    std::string line =
        fmt::format("  cache {}: {}, {} free; ", status_number(cache, "id"),
                    in_bytes(status_number(cache, "size")), in_bytes(status_number(cache, "free_bytes")));
    line += gets == 0 ? "no gets" : fmt::format("{} gets", gets);
    if (before != nullptr && seconds > 0) {
        const uint64_t more = grown(cache, before, "hits") + grown(cache, before, "hits_pending") +
                              grown(cache, before, "misses");
        line += fmt::format(", {:.0f} a second", static_cast<double>(more) / seconds);
    }
    return line + fmt::format("; {} hits, {} misses, {} evictions, {} invalidations\n", hits,
                              status_number(cache, "misses"), status_number(cache, "evictions"),
                              status_number(cache, "invalidations"));
}

std::string link_line(const Json& link, const Json* before, double seconds) {
    const auto one_way = [&](const char* name, const char* what) {
        std::string text = fmt::format("{} {}", in_bytes(status_number(link, name)), what);
        if (before != nullptr && seconds > 0)
            text += fmt::format(
                ", {} a second",
                in_bytes(static_cast<uint64_t>(static_cast<double>(grown(link, before, name)) / seconds)));
        return text;
    };
    return fmt::format("  {} of rank {}: {}; {}\n", link.value("kind", "?"), status_number(link, "rank"),
                       one_way("bytes_read", "read"), one_way("bytes_written", "written"));
}

}  // namespace

std::string memory_text(const Json& status, const Json* before, double seconds) {
    std::string text = fmt::format(
        "memory of rank {} of {}, pid {}: {} client(s), {} allocation(s), {} range(s) held\n",
        status_number(status, "rank"), status_number(status, "ranks"), status_number(status, "pid"),
        status["clients"].size(), status["allocations"].size(), status_number(status, "local_ranges"));
    for (const Json& cache : status["caches"])
        text += cache_line(cache, row_before(before, "caches", cache, {"id"}), seconds);
    for (const Json& link : status["links"])
        text += link_line(link, row_before(before, "links", link, {"kind", "rank"}), seconds);
    return text;
}

MemoryLooks::MemoryLooks() : thread_([this] { run(); }) {}

MemoryLooks::~MemoryLooks() {
    std::shared_ptr<memory::IpcConnection> asked;
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        asked = connection_;
    }
    changed_.notify_all();
    if (asked) asked->leave();
    thread_.join();
}

std::string MemoryLooks::look() {
    constexpr auto kAnswersWithin = 50ms;
    std::unique_lock lock(mutex_);
    wanted_ = true;
    changed_.notify_all();
    (void)changed_.wait_for(lock, kAnswersWithin, [&] { return !wanted_; });
    if (!now_) return "";
    const double seconds = before_ ? std::chrono::duration<double>(now_->at - before_->at).count() : 0;
    return memory_text(now_->status, before_ ? &before_->status : nullptr, seconds);
}

void MemoryLooks::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return wanted_ || stopping_; });
        if (stopping_) return;
        lock.unlock();
        std::optional<Json> status = ask();
        lock.lock();
        const bool same = now_ && status && now_->status["pid"] == (*status)["pid"];
        before_ = same ? std::move(now_) : std::nullopt;
        now_.reset();
        if (status) now_ = Look{std::chrono::steady_clock::now(), std::move(*status)};
        wanted_ = false;
        changed_.notify_all();
    }
}

std::optional<Json> MemoryLooks::ask() {
    try {
        std::shared_ptr<memory::IpcConnection> connection = connection_;
        if (!connection) {
            connection = std::make_shared<memory::IpcConnection>("");
            const std::scoped_lock lock(mutex_);
            if (stopping_) return {};
            connection_ = connection;
        }
        return Json::parse(connection->status());
    } catch (const std::exception&) {
        // None is there, or not any more: it is looked for again.
        const std::scoped_lock lock(mutex_);
        connection_.reset();
        return {};
    }
}

}  // namespace heddle::tool
