// Tile Cholesky: A = L Lᵀ, and systems of equations solved with it, as tasks on tiles.
//
// Both insert their tasks into a sequence and return; the results are there after its wait(). Whatever the
// engine and its workers, each tile is updated in the same order, so the results are the same to the last
// bit. Several factorisations may be in one runtime at once. Any thread may call.
//
// Errors of insertion are thrown here: kInvalidArgument for shapes that do not fit, kUnavailable as lapack().
// Sources: Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear algebra algorithms" (2009);
// seed 003 section 6.
#pragma once

#include <cstddef>

#include "algebra/progress.hpp"
#include "heddle/task.hpp"

namespace heddle::algebra {

/// The lower triangle of A becomes L; tiles above the diagonal are not touched, nor what lies above it in
/// those on it. Where A is not positive definite, wait() throws kBadInput that names the pivot, what depends
/// on it is cancelled, and A is half done.
void cholesky_factor(Sequence& sequence, TileMatrix<double>& a, Progress* progress = nullptr);

/// B becomes A⁻¹ B, where `l` is, or will be, what cholesky_factor() made of A. B's tiles are as high as A's.
void cholesky_solve(Sequence& sequence, const TileMatrix<double>& l, TileMatrix<double>& b,
                    Progress* progress = nullptr);

/// A tile size that suits n x n elements on so many workers (docs/ALGEBRA.md tells how it was found).
[[nodiscard]] size_t cholesky_tile_size(size_t n, int workers);

}  // namespace heddle::algebra
