// What a task does with tiles of symmetric matrices, beyond what Cholesky needs; of a symmetric tile only the
// lower triangle is read and written. Each on one thread (BlasThreads).
//
// Any thread may call; nothing is shared. All throw as lapack().
#pragma once

#include <cstddef>

#include "algebra/tile_kernels.hpp"

namespace heddle::algebra {

/// C = C + alpha A B (left) or alpha B A (right), A symmetric.
void multiply_symmetric_tile(Side side, double alpha, MatrixView<const double> a, MatrixView<const double> b,
                             MatrixView<double> c);

/// C = C − A Bᵀ − B Aᵀ in the lower triangle of C.
void update_symmetric_tile(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c);

/// A = L⁻¹ A L⁻ᵀ in the lower triangle of A.
void transform_tile(MatrixView<const double> l, MatrixView<double> a);

/// A = Q R with Q = I − V T Vᵀ: V, unit lower trapezoidal, and R take the place of A, which has no fewer rows
/// than columns; T is written whole, zeros below its diagonal.
void reflect_tile(MatrixView<double> a, MatrixView<double> t);

}  // namespace heddle::algebra
