// What a task does with tiles: the four operations of tile algorithms, each on one thread (BlasThreads).
//
// Any thread may call; nothing is shared. All throw as lapack(), and kLimit for a tile with more rows than
// LAPACK can count (2^31 - 1).
#pragma once

#include <cstddef>

#include "heddle/data.hpp"

namespace heddle::algebra {

enum class Transpose : char { kNo = 'N', kYes = 'T' };
enum class Side : char { kLeft = 'L', kRight = 'R' };

/// A = L Lᵀ in the lower triangle of a square tile. 0, or the number, from 1, of the first row whose pivot is
/// not positive; A is then half done.
[[nodiscard]] size_t factor_tile(MatrixView<double> a);

/// B = op(L)⁻¹ B (left) or B op(L)⁻¹ (right); L is lower triangular.
void solve_tile(Side side, Transpose op, MatrixView<const double> l, MatrixView<double> b);

/// C = C − A Aᵀ in the lower triangle of C.
void update_diagonal_tile(MatrixView<const double> a, MatrixView<double> c);

/// C = beta C + alpha op(A) op(B).
void multiply_tile(double alpha, Transpose op_a, MatrixView<const double> a, Transpose op_b,
                   MatrixView<const double> b, double beta, MatrixView<double> c);

}  // namespace heddle::algebra
