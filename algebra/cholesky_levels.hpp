// CholeskyLevels: how far each task of a tile Cholesky factorisation is from the end, as its priority.
//
// The level of a task is the arithmetic on the longest way from its start to the end of the factorisation, in
// thirds of tile³ (what factoring a tile costs): a task on the critical path goes before all that may wait.
// Computed once, in tiles³ steps; read by any thread afterwards.
//
// Source: the upward rank of Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task
// scheduling" (2002), without transfer costs.
#pragma once

#include <cstddef>
#include <vector>

namespace heddle::algebra {

class CholeskyLevels {
  public:
    /// Of `tiles` x `tiles` tiles.
    explicit CholeskyLevels(size_t tiles);

    /// Of the last task that writes tile (i, j), i >= j: factoring a diagonal one, solving with another.
    [[nodiscard]] int finish(size_t i, size_t j) const { return finish_[i + j * tiles_]; }
    /// Of the update of tile (i, j) in step k < j.
    [[nodiscard]] int update(size_t i, size_t j, size_t k) const {
        return static_cast<int>(j - k) * (i == j ? kDiagonalUpdate : kUpdate) + finish(i, j);
    }

  private:
    static constexpr int kFactor = 1, kSolve = 3, kDiagonalUpdate = 3, kUpdate = 6;
    [[nodiscard]] int solve(size_t i, size_t j) const;

    size_t tiles_;
    std::vector<int> finish_;
};

}  // namespace heddle::algebra
