// How right a solution is, and whether a matrix is symmetric at all.
//
// Pure functions; any thread. They read all of A, the upper triangle too.
#pragma once

#include <string>

#include "algebra/dense_matrix.hpp"

namespace heddle::algebra {

/// What a stable solver stays below (the bound of the LINPACK benchmark's check).
inline constexpr double kResidualLimit = 16;

/// ‖A x − b‖ / (‖A‖ ‖x‖ n ε) in the maximum norm, of the column with the largest; of the order of 1 for a
/// backward stable solver, whatever A's condition. Not a number where x has one. Throws as lapack().
[[nodiscard]] double residual(MatrixView<const double> a, MatrixView<const double> x,
                              MatrixView<const double> b);

/// The largest |x − y| over the largest |x|.
[[nodiscard]] double difference(MatrixView<const double> x, MatrixView<const double> y);

/// Throws kBadInput where A is not square, or an element differs from its mirror image by more than rounding
/// in decimals explains (1e-12 of them); the message begins with `name` and tells which.
void require_symmetric(MatrixView<const double> a, const std::string& name);

}  // namespace heddle::algebra
