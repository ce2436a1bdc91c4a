// Tile GEMM: C = alpha A B + beta C, as tasks on tiles.
//
// Inserts its tasks and returns; C is there after the sequence's wait(). Each tile of C adds its products in
// the same order on every engine. Any thread may call.
#pragma once

#include <cstddef>

#include "heddle/task.hpp"

namespace heddle::algebra {

/// Throws kInvalidArgument for shapes or tiles that do not fit, kUnavailable as lapack(). C must not be A or
/// B. With beta 0 what is in C is not read.
void multiply(Sequence& sequence, double alpha, const TileMatrix<double>& a, const TileMatrix<double>& b,
              double beta, TileMatrix<double>& c);

/// A tile size that suits products of n x n elements on so many workers (docs/ALGEBRA.md).
[[nodiscard]] size_t multiply_tile_size(size_t n, int workers);

}  // namespace heddle::algebra
