// Matrices whose properties are known, made without random numbers.
//
// For tests, one thread.
#pragma once

#include <cmath>

#include "algebra/dense_matrix.hpp"

namespace heddle::test {

/// The covariance exp(−|i − j| / reach) of points on a line, which is positive definite, and a little more on
/// the diagonal.
inline algebra::DenseMatrix covariance(size_t n, double reach = 10) {
    algebra::DenseMatrix a(n, n);
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < n; ++i) {
            const double distance = i > j ? static_cast<double>(i - j) : static_cast<double>(j - i);
            a(i, j) = std::exp(-distance / reach) + (i == j ? 0.01 : 0);
        }
    return a;
}

/// The five-point Laplacian of a square grid of side x side points.
inline algebra::DenseMatrix laplacian(size_t side) {
    const size_t n = side * side;
    algebra::DenseMatrix a(n, n);
    for (size_t p = 0; p < n; ++p) {
        a(p, p) = 4;
        if ((p + 1) % side != 0) a(p, p + 1) = a(p + 1, p) = -1;
        if (p + side < n) a(p, p + side) = a(p + side, p) = -1;
    }
    return a;
}

/// 1 / (i + j + 1): positive definite, and so badly conditioned that factorisations break down from about 13
/// on.
inline algebra::DenseMatrix hilbert(size_t n) {
    algebra::DenseMatrix a(n, n);
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < n; ++i) a(i, j) = 1 / static_cast<double>(i + j + 1);
    return a;
}

/// Some numbers between −1 and 1 that follow no simple pattern.
inline algebra::DenseMatrix waves(size_t rows, size_t columns) {
    algebra::DenseMatrix a(rows, columns);
    for (size_t j = 0; j < columns; ++j)
        for (size_t i = 0; i < rows; ++i) a(i, j) = std::sin(static_cast<double>(1 + i * 7 + j * 13) * 1.3);
    return a;
}

}  // namespace heddle::test
