// Orthonormal columns and singular values of one tile, by LAPACK on one thread.
//
// Any thread may call; nothing is shared. All throw as lapack(). Matrices of no columns are let through.
#pragma once

#include <vector>

#include "algebra/dense_matrix.hpp"

namespace heddle::algebra {

/// Columns of A, no more than its rows, become orthonormal and span what they spanned.
void orthonormalise(MatrixView<double> a);

/// The same; the answer is R of A = Q R.
[[nodiscard]] DenseMatrix orthonormalise_with_r(MatrixView<double> a);

/// left · diag(values) · right, the values in falling order.
struct SingularValues {
    DenseMatrix left;
    std::vector<double> values;
    DenseMatrix right;
};

/// Of a square A, which is destroyed. Throws kBadInput where it holds what is no number.
[[nodiscard]] SingularValues singular_values(MatrixView<double> a);

}  // namespace heddle::algebra
