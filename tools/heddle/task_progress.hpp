// TaskProgress: a line on the terminal that tells how far an algorithm's tasks are, how fast they end and how
// long the rest will take, while the object lives.
//
// Made and destroyed by one thread; a thread of its own writes to stderr five times a second, and not at all
// where that is no terminal, or quiet. The line goes at the end.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "algebra/progress.hpp"
#include "base/standard_streams.hpp"

namespace heddle::tool {

/// "1,200 of 4,960 tasks, 410 a second, 9 s left". Before the first has ended nobody knows how long it takes.
[[nodiscard]] inline std::string progress_text(size_t ended, size_t inserted, double elapsed_s) {
    const auto grouped = [](size_t number) {
        std::string text = std::to_string(number);
        for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
        return text;
    };
    std::string text = fmt::format("{} of {} tasks", grouped(ended), grouped(inserted));
    if (ended == 0 || elapsed_s <= 0) return text;
    const double rate = static_cast<double>(ended) / elapsed_s;
    const auto left_s =
        static_cast<int64_t>(static_cast<double>(inserted - std::min(ended, inserted)) / rate + 0.5);
    text += rate < 10 ? fmt::format(", {:.2g} a second", rate)
                      : fmt::format(", {} a second", grouped(static_cast<size_t>(rate)));
    if (left_s >= 60) return text + fmt::format(", {} min {} s left", left_s / 60, left_s % 60);
    return text + fmt::format(", {} s left", left_s);
}

class TaskProgress {
  public:
    explicit TaskProgress(std::string name, bool quiet = false) : name_(std::move(name)) {
        if (!quiet && isatty(STDERR_FILENO) != 0)
            writer_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    TaskProgress(const TaskProgress&) = delete;
    TaskProgress& operator=(const TaskProgress&) = delete;

    [[nodiscard]] algebra::Progress& counts() { return counts_; }

  private:
    void run(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; }) &&
               !stop.stop_requested())
            to_stderr("\r\033[K{}: {}", name_, line());
        to_stderr("\r\033[K");
    }
    [[nodiscard]] std::string line() const {
        using Seconds = std::chrono::duration<double>;
        const double elapsed_s = Seconds(std::chrono::steady_clock::now() - start_).count();
        return progress_text(counts_.ended.load(), counts_.inserted.load(), elapsed_s);
    }

    std::string name_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    algebra::Progress counts_;
    std::mutex mutex_;
    std::condition_variable_any changed_;  // never: a wait for it ends by time or by the stop
    std::jthread writer_;                  // last: it ends before what it uses
};

}  // namespace heddle::tool
