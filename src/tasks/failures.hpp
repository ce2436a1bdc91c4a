// Failures: exceptions of tasks on their way to whom they concern.
//
// One for a runtime; any thread. While a failure lives, tasks that would read what was not written for it are
// cancelled; each other sequence that this reaches gets a failure of its own, with the same exception. The
// wait of its sequence tells a failure and begins another era: tasks of that one run, those of eras before
// are cancelled still, until all of them have ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "tasks/task.hpp"

namespace heddle {

class Failures {
  public:
    Failures() { failures_.reserve(16); }

    /// May be asked by every task before it runs.
    [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

    /// In which a task is inserted now.
    [[nodiscard]] uint32_t era() const noexcept { return era_.load(std::memory_order_relaxed); }

    /// The task has thrown: what it writes is not to be read. Cannot fail: without memory the exception is
    /// told as std::bad_alloc.
    void failed(Task& task, std::exception_ptr error) noexcept;
    /// True: the task reads something that was not written, and is not to run; so what it writes is not
    /// either. `why` is then the error.
    [[nodiscard]] bool cancels(Task& task, std::exception_ptr& why) noexcept;
    /// The task has run: what it has written whole is good again.
    static void healed(Task& task) noexcept;

    /// The first failure of the sequence, or null; from now on all of its failures are told.
    [[nodiscard]] std::exception_ptr take(const SequenceState& sequence) noexcept;
    /// All tasks of eras before have ended.
    void forget_told() noexcept;

  private:
    struct Failure {
        uint64_t id;
        const SequenceState* sequence;
        std::exception_ptr error;
        uint32_t told_before = 0;  ///< that era; 0: not told, and else of no sequence
    };
    /// With so many the oldest that was told is forgotten.
    static constexpr size_t kMost = 1024;
    static void mark(Task& task, uint64_t failure) noexcept;
    [[nodiscard]] const Failure* find(const Task& task, uint64_t id) const;
    uint64_t note(const SequenceState* sequence, std::exception_ptr error);

    std::atomic<size_t> count_{0};  // of failures_; written under the mutex
    std::atomic<uint32_t> era_{1};  // the same
    std::mutex mutex_;
    uint64_t last_id_ = 0;
    std::vector<Failure> failures_;
};

}  // namespace heddle
