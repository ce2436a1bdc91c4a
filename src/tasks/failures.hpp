// Failures: exceptions of tasks on their way to whom they concern.
//
// One for a runtime; any thread. A failure lives until the wait of its sequence has told it. While one lives,
// tasks that would read what was not written for it are cancelled; each other sequence that this reaches gets
// a failure of its own, with the same exception.
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

    /// The task has thrown: what it writes is not to be read. Cannot fail: without memory the exception is
    /// told as std::bad_alloc.
    void failed(Task& task, std::exception_ptr error) noexcept;
    /// True: the task reads something that was not written, and is not to run; so what it writes is not
    /// either. `why` is then the error.
    [[nodiscard]] bool cancels(Task& task, std::exception_ptr& why) noexcept;
    /// The task has run: what it has written whole is good again.
    static void healed(Task& task) noexcept;

    /// The first failure of the sequence, or null; from now on none of its failures lives.
    [[nodiscard]] std::exception_ptr take(const SequenceState& sequence) noexcept;

  private:
    struct Failure {
        uint64_t id;
        const SequenceState* sequence;
        std::exception_ptr error;
    };
    static void mark(Task& task, uint64_t failure) noexcept;
    [[nodiscard]] const Failure* find(uint64_t id) const;
    uint64_t note(const SequenceState* sequence, std::exception_ptr error);

    std::atomic<size_t> count_{0};  // of failures_; written under the mutex
    std::mutex mutex_;
    uint64_t last_id_ = 0;
    std::vector<Failure> failures_;
};

}  // namespace heddle
