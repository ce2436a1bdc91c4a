// TaskProgress: a line on the terminal that tells how far an algorithm's tasks are, while the object lives.
//
// Made and destroyed by one thread; a thread of its own writes to stderr five times a second, and not at all
// where that is no terminal. The line goes at the end.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "algebra/progress.hpp"

namespace heddle::tool {

class TaskProgress {
  public:
    explicit TaskProgress(std::string name) : name_(std::move(name)) {
        if (isatty(STDERR_FILENO) != 0)
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
            fmt::print(stderr, "\r\033[K{}: {} of {} tasks", name_, counts_.ended.load(),
                       counts_.inserted.load());
        fmt::print(stderr, "\r\033[K");
    }

    std::string name_;
    algebra::Progress counts_;
    std::mutex mutex_;
    std::condition_variable_any changed_;  // never: a wait for it ends by time or by the stop
    std::jthread writer_;                  // last: it ends before what it uses
};

}  // namespace heddle::tool
