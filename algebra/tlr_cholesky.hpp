// Tile-low-rank Cholesky: A ≈ L Lᵀ to an accuracy that the caller chooses, as tasks on compressed tiles.
//
// All insert their tasks into a sequence and return; the results are there after its wait(). The same bits
// come out of each engine. Any thread may call. Errors of insertion are thrown here: kInvalidArgument for
// shapes and accuracies that do not fit, kUnavailable as lapack().
//
// Accuracy: a tile that is compressed may differ from what it stands for by accuracy times the largest
// element of A's diagonal, in the Frobenius norm. Where that is not small beside A's smallest eigenvalue, A
// may lose its definiteness, and the factorisation tells a failing pivot.
//
// Sources: as of tlr_matrix.hpp and low_rank.hpp.
#pragma once

#include <cstddef>

#include "algebra/covariance.hpp"
#include "algebra/progress.hpp"
#include "algebra/tlr_matrix.hpp"

namespace heddle::algebra {

/// A becomes the compressed lower triangle of the symmetric matrix that `source` makes; the answer is the
/// tolerance for tlr_factor(), accuracy times the largest element of the diagonal. `source` is copied.
[[nodiscard]] double tlr_compress(Sequence& sequence, const ElementSource& source, double accuracy,
                                  TlrMatrix& a, Progress* progress = nullptr);

/// A becomes L; tiles are compressed anew to within `tolerance`. Where A is not positive definite, wait()
/// throws kBadInput that names the pivot, what depends on it is cancelled, and A is half done.
void tlr_factor(Sequence& sequence, TlrMatrix& a, double tolerance, Progress* progress = nullptr);

/// B becomes A⁻¹ B, where `l` is, or will be, what tlr_factor() made of A. B's tiles are as high as A's.
void tlr_solve(Sequence& sequence, const TlrMatrix& l, TileMatrix<double>& b, Progress* progress = nullptr);

/// A tile size that suits n points (docs/ALGEBRA.md tells how it was found).
[[nodiscard]] size_t tlr_tile_size(size_t n);

/// ‖A − L Lᵀ‖ / ‖A‖ in the Frobenius norm, estimated by products with a few random vectors. Makes the
/// elements of A anew; runs on the calling thread alone, which waits for the tasks that use L.
[[nodiscard]] double tlr_backward_error(const ElementSource& source, const TlrMatrix& l);

}  // namespace heddle::algebra
