// StarPuReady: what StarPU says could run, of one engine, best first: those with a priority above 0, then the
// others as they came, then those below 0.
//
// Any thread. Needs memory for tasks with a priority alone; without it they come as if they had none.
#pragma once

#include <starpu.h>

#include <new>

#include "engines/native/priority_queue.hpp"

namespace heddle {

class StarPuReady {
  public:
    void push(starpu_task& job) noexcept {
        Task& task = task_of(job);
        if (task.priority != 0) {
            try {
                // Not in a list here: the heap has places of its own.
                task.next = reinterpret_cast<Task*>(&job);
                ranked_.push(task);
                count_.fetch_add(1, std::memory_order_seq_cst);
                return;
            } catch (const std::bad_alloc&) {
            }
        }
        {
            const std::lock_guard guard(lock_);
            job.next = nullptr;
            (last_ == nullptr ? first_ : last_->next) = &job;
            last_ = &job;
        }
        count_.fetch_add(1, std::memory_order_seq_cst);
    }
    /// Null where there is none.
    [[nodiscard]] starpu_task* pop() noexcept {
        if (!any()) return nullptr;
        starpu_task* job = job_of(ranked_.pop(false));
        if (job == nullptr) job = pop_plain();
        if (job == nullptr) job = job_of(ranked_.pop(true));
        if (job != nullptr) count_.fetch_sub(1, std::memory_order_relaxed);
        return job;
    }
    /// A hint; exact for whom a fence orders after the push.
    [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_seq_cst) > 0; }
    /// Is there one that comes before those without a priority?
    [[nodiscard]] bool any_urgent() const noexcept { return ranked_.has_for_now(); }

    [[nodiscard]] static Task& task_of(const starpu_task& job) { return *static_cast<Task*>(job.cl_arg); }

  private:
    static starpu_task* job_of(Task* task) noexcept {
        return task == nullptr ? nullptr : reinterpret_cast<starpu_task*>(task->next);
    }
    starpu_task* pop_plain() noexcept {
        const std::lock_guard guard(lock_);
        starpu_task* const job = first_;
        if (job == nullptr) return nullptr;
        first_ = job->next;
        if (first_ == nullptr) last_ = nullptr;
        job->next = nullptr;
        return job;
    }

    PriorityQueue ranked_;
    ShortLock lock_;  // for those below
    starpu_task *first_ = nullptr, *last_ = nullptr;
    std::atomic<int> count_{0};  // of both; seq_cst, with who sleeps for want of work
};

}  // namespace heddle
