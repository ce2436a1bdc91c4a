// GrantHistory: watches an arbiter in a thread of its own and checks that each of its decisions keeps the
// books: no CPU goes to a second holder, none is held by somebody unknown, and who leaves leaves nothing
// behind.
//
// Made and read by one thread; the mutex guards what the watching thread writes.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "cores/observer.hpp"
#include "heddle/error.hpp"
#include "support/child.hpp"

namespace heddle::test {

class GrantHistory {
  public:
    explicit GrantHistory(const std::string& path) : observer_(path) {
        observer_.watch();
        thread_ = std::thread([this] { watch(); });
    }
    ~GrantHistory() {
        stop_ = true;
        thread_.join();
    }

    /// When the arbiter said that this process is gone, by CLOCK_MONOTONIC.
    [[nodiscard]] std::optional<uint64_t> departure(pid_t pid) {
        const std::lock_guard lock(mutex_);
        const auto place = departures_.find(pid);
        return place == departures_.end() ? std::nullopt : std::optional(place->second);
    }
    /// Whether the arbiter knows this process now.
    [[nodiscard]] bool present(pid_t pid) {
        const std::lock_guard lock(mutex_);
        return std::ranges::any_of(pids_, [&](const auto& client) { return client.second == pid; });
    }
    /// Whether it has given this process a CPU, ever.
    [[nodiscard]] bool has_had_a_cpu(pid_t pid) {
        const std::lock_guard lock(mutex_);
        return given_to_.contains(pid);
    }
    [[nodiscard]] std::string broken() {
        const std::lock_guard lock(mutex_);
        return broken_;
    }
    [[nodiscard]] long moves() {
        const std::lock_guard lock(mutex_);
        return moves_;
    }
    [[nodiscard]] int held() {
        const std::lock_guard lock(mutex_);
        return static_cast<int>(holders_.size());
    }
    /// The arbiter ended or dropped us.
    [[nodiscard]] bool lost() const { return lost_; }

  private:
    void watch() {
        try {
            while (!stop_)
                if (const auto event = observer_.next_event(50ms)) take(*event);
        } catch (const Error&) {
            lost_ = true;
        }
    }
    void take(const heddle_event& event) {
        const std::lock_guard lock(mutex_);
        const std::string who = "client " + std::to_string(event.client);
        const std::string what = "CPU " + std::to_string(event.cpu);
        if (event.kind == HEDDLE_EVENT_JOINED) {
            pids_[event.client] = static_cast<pid_t>(event.value);
        } else if (event.kind == HEDDLE_EVENT_LEFT) {
            for (const auto& [cpu, holder] : holders_)
                if (holder == event.client) complain(who + " left and holds CPU " + std::to_string(cpu));
            if (!pids_.contains(event.client)) complain(who + " left and was never there");
            departures_[pids_[event.client]] = event.time_ns;
            pids_.erase(event.client);
        } else if (event.kind == HEDDLE_EVENT_CPU && event.client == 0) {
            if (holders_.erase(event.cpu) == 0) complain(what + " was freed twice");
        } else if (event.kind == HEDDLE_EVENT_CPU) {
            ++moves_;
            const auto taker = pids_.find(event.client);
            if (taker == pids_.end())
                complain(what + " went to the unknown " + who);
            else
                given_to_.insert(taker->second);
            if (!holders_.emplace(event.cpu, event.client).second)
                complain(what + " went to " + who + " while held by " + std::to_string(holders_[event.cpu]));
        }
    }
    void complain(const std::string& line) {
        if (broken_.empty()) broken_ = line;
    }

    Observer observer_;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> lost_ = false;
    std::mutex mutex_;
    std::map<uint32_t, pid_t> pids_;
    std::map<int, uint32_t> holders_;
    std::map<pid_t, uint64_t> departures_;
    std::set<pid_t> given_to_;
    std::string broken_;
    long moves_ = 0;
    std::thread thread_;
};

}  // namespace heddle::test
