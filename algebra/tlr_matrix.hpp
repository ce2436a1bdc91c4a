// TlrMatrix: a symmetric matrix in tiles, those on the diagonal dense and those below it compressed.
//
// Ranks differ from tile to tile and change while tasks run, so a compressed tile is an object on the heap
// that tasks name by a handle and find by a pointer: the task that writes the tile replaces its factors, and
// the memory goes with them. A tile keeps what was subtracted from it as products with the factors of other
// tiles, until it is compressed anew; those factors are final by then, and live as long as such a product.
// Any thread may use it; destruction is for one, and waits for its tasks.
//
// Source: Akbudak, Ltaief, Mikhalev, Keyes, "Tile low rank Cholesky factorization for climate/weather
// modeling applications on manycore architectures" (HiCMA, 2017).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "algebra/low_rank.hpp"
#include "heddle/task.hpp"

namespace heddle::algebra {

/// left.u · middle · right.uᵀ, to be subtracted.
struct PendingProduct {
    std::shared_ptr<const LowRank> left;
    DenseMatrix middle;
    std::shared_ptr<const LowRank> right;
};

struct LowRankTile {
    std::shared_ptr<LowRank> factors;  ///< never null
    std::vector<PendingProduct> pending;
};

struct RankStatistics {
    size_t smallest = 0, largest = 0;
    double average = 0;
    size_t bytes = 0;  ///< of all elements, dense and compressed
};

class TlrMatrix {
  public:
    using Below = Scalar<LowRankTile*>;

    /// Zero: all ranks are 0. Throws kInvalidArgument for a size or tile of 0.
    TlrMatrix(Runtime& runtime, size_t n, size_t tile);

    [[nodiscard]] size_t size() const { return n_; }
    [[nodiscard]] size_t tile_size() const { return tile_; }
    /// On a side.
    [[nodiscard]] size_t tiles() const { return diagonal_.size(); }
    [[nodiscard]] size_t rows_of(size_t tile) const { return tile + 1 < tiles() ? tile_ : n_ - tile * tile_; }

    [[nodiscard]] Matrix<double>& diagonal(size_t k) { return diagonal_[k]; }
    [[nodiscard]] const Matrix<double>& diagonal(size_t k) const { return diagonal_[k]; }
    /// i > j.
    [[nodiscard]] Below& below(size_t i, size_t j) { return below_[index(i, j)]; }
    [[nodiscard]] const Below& below(size_t i, size_t j) const { return below_[index(i, j)]; }

    /// Waits for the tasks that use it.
    [[nodiscard]] RankStatistics ranks() const;

  private:
    [[nodiscard]] static size_t index(size_t i, size_t j) { return i * (i - 1) / 2 + j; }

    size_t n_, tile_;
    std::vector<std::unique_ptr<LowRankTile>> low_rank_;
    std::vector<Matrix<double>> diagonal_;
    std::vector<Below> below_;  // after what they point to
};

}  // namespace heddle::algebra
