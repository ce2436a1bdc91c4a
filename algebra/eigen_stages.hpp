// The stages of a generalized symmetric eigenproblem A x = λ B x, each as tasks: the standard form, the
// reduction to a band, and the band to a tridiagonal matrix.
//
// The first inserts its tasks into a sequence and returns, and its result is there after its wait(); the
// others return when their tasks, which use memory of the call's, have ended. The first two compute with
// whole tiles, the third with vectors on a band that fits into caches: they may well run best on different
// engines, which is why eigenvalues.hpp lets the caller switch between them. Each datum is written in the
// order of insertion, so the results are the same to the last bit on each engine. Any thread may call.
//
// Sources: seed 003 section 6; Haidar, Ltaief, Dongarra, "Parallel reduction to condensed forms for symmetric
// eigenvalue problems using aggregated fine-grained and memory-aware kernels" (2011); Bischof, Lang, Sun, "A
// framework for symmetric band reduction" (2000).
#pragma once

#include <cstddef>

#include "algebra/dense_matrix.hpp"
#include "algebra/progress.hpp"
#include "heddle/task.hpp"

namespace heddle::algebra {

/// The lower triangle of A becomes that of L⁻¹ A L⁻ᵀ, where `l` is, or will be, what cholesky_factor() made
/// of B. Tiles of both are of one size. Throws kInvalidArgument for shapes that do not fit.
void to_standard_form(Sequence& sequence, const TileMatrix<double>& l, TileMatrix<double>& a,
                      Progress* progress = nullptr);

/// A symmetric band matrix in column-major storage, 2 width + 1 rows: element (i, j), i >= j, is in row i − j
/// of column j. The rows beyond `width` are room for what bulge chasing fills in between.
class SymmetricBand {
  public:
    /// Zero. `width` is the number of diagonals below the main one, from 1.
    SymmetricBand(size_t n, size_t width) : width_(width), values_(2 * width + 1, n) {}

    [[nodiscard]] size_t size() const { return values_.columns(); }
    [[nodiscard]] size_t width() const { return width_; }
    double& operator()(size_t i, size_t j) { return values_(i - j, j); }
    double operator()(size_t i, size_t j) const { return values_(i - j, j); }
    [[nodiscard]] MatrixView<double> view() { return values_.view(); }

  private:
    size_t width_;
    DenseMatrix values_;
};

/// The band becomes similar to the symmetric matrix A, of which the lower triangle is read, and destroyed.
/// A's tile size is a multiple of the band's width, or one tile is all. Throws kInvalidArgument for shapes
/// that do not fit.
void reduce_to_band(Runtime& runtime, TileMatrix<double>& a, SymmetricBand& band,
                    Progress* progress = nullptr);

/// The band becomes tridiagonal: elements beyond the first below the diagonal are 0 then.
void chase_bulges(Runtime& runtime, SymmetricBand& band, Progress* progress = nullptr);

}  // namespace heddle::algebra
