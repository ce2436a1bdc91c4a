// Low-rank matrices: U Vᵀ with few columns in U and V, and how a sum of such products becomes one again.
//
// A LowRankSum is what a tile of a matrix is while a factorisation works on it: its own U Vᵀ, or the dense
// tile that it was made of, less products that were subtracted. Subtracting costs the small middle matrix
// alone; compress() multiplies the whole sum with few random vectors, which is matrix products throughout,
// finds its columns' space, and cuts what is below the tolerance. The rank comes out of that, and may be
// anything from 0 to the size of the tile.
//
// The random vectors are the same for the same size of tile, always: results are equal to the last bit.
// Values without a runtime; a sum refers to what it was made of, which must stay. One thread each.
//
// Sources: Halko, Martinsson, Tropp, "Finding structure with randomness" (2011), algorithms 4.2 and 5.1;
// Boukaram, Zampini, Turkiyyah, Keyes, "H2OPUS-TLR: high performance tile low rank symmetric factorizations
// using adaptive randomized approximation" (2021).
#pragma once

#include <cstddef>
#include <vector>

#include "algebra/dense_matrix.hpp"
#include "algebra/tile_kernels.hpp"

namespace heddle::algebra {

struct LowRank {
    DenseMatrix u, v;  ///< of as many columns
    [[nodiscard]] size_t rank() const { return u.columns(); }
};

class LowRankSum {
  public:
    /// Of a dense matrix, or of one that is compressed already.
    explicit LowRankSum(MatrixView<const double> dense);
    explicit LowRankSum(const LowRank& base);

    /// Subtracts U_left V_leftᵀ (U_right V_rightᵀ)ᵀ, where `middle` is V_leftᵀ V_right.
    void subtract(const LowRank& left, const DenseMatrix& middle, const LowRank& right);

    /// U Vᵀ that differs from the sum by at most `tolerance` in the Frobenius norm (with a probability that
    /// makes no difference: the estimate of what is left is taken twice too large). Throws as lapack().
    [[nodiscard]] LowRank compress(double tolerance) const;

  private:
    struct Product {
        MatrixView<const double> left, middle, right;
    };
    void apply(Transpose op, MatrixView<const double> x, MatrixView<double> y) const;

    size_t rows_, columns_, expected_rank_;
    MatrixView<const double> dense_{};  // no data: base_u_ base_vᵀ
    MatrixView<const double> base_u_{}, base_v_{};
    std::vector<Product> products_;
};

}  // namespace heddle::algebra
