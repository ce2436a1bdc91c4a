// TaskInserter: inserts tasks with a name and a priority, counted where somebody asks for progress.
//
// Made by an algorithm for as long as it inserts, by one thread. What all algorithms on tiles have in common
// is here, too: a factored diagonal tile whose failing pivot is told by its number in the matrix.
#pragma once

#include <cstddef>
#include <utility>

#include "algebra/lapack.hpp"
#include "algebra/progress.hpp"
#include "heddle/task.hpp"

namespace heddle::algebra {

class TaskInserter {
  public:
    /// Throws as lapack(): a missing library is told where tasks are inserted, and not by each of them.
    TaskInserter(Sequence& sequence, Progress* progress) : sequence_(sequence), progress_(progress) {
        (void)lapack();
    }

    /// `function` is copied, and called with what the arguments stand for.
    template <class Function, class... Arguments>
    void task(const char* name, int priority, Function function, Arguments... arguments) {
        sequence_.insert(
            {.priority = priority, .name = name},
            [function, progress = progress_](auto&&... given) {
                function(given...);
                if (progress != nullptr) progress->ended.fetch_add(1, std::memory_order_relaxed);
            },
            std::move(arguments)...);
        if (progress_ != nullptr) progress_->inserted.fetch_add(1, std::memory_order_relaxed);
    }

  private:
    Sequence& sequence_;
    Progress* progress_;
};

/// A = L Lᵀ in the lower triangle of a diagonal tile whose first row has the number `first`, from 0, in the
/// matrix. Throws kBadInput that names the pivot.
void factor_diagonal(MatrixView<double> a, size_t first);

}  // namespace heddle::algebra
