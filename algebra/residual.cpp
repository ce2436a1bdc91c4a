#include "algebra/residual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "algebra/tile_kernels.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// The largest magnitude; not a number where there is one that is none.
double largest(const double* values, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; ++i) {
        if (std::isnan(values[i])) return kNoNumber;
        most = std::max(most, std::abs(values[i]));
    }
    return most;
}

/// The largest sum of magnitudes in a row.
double norm(MatrixView<const double> a) {
    std::vector<double> sums(a.rows);
    for (size_t j = 0; j < a.columns; ++j)
        for (size_t i = 0; i < a.rows; ++i) sums[i] += std::abs(a(i, j));
    return largest(sums.data(), sums.size());
}

}  // namespace

double residual(MatrixView<const double> a, MatrixView<const double> x, MatrixView<const double> b) {
    DenseMatrix rest(b.rows, b.columns);
    for (size_t j = 0; j < b.columns; ++j)
        for (size_t i = 0; i < b.rows; ++i) rest(i, j) = b(i, j);
    multiply_tile(1, Transpose::kNo, a, Transpose::kNo, x, -1, rest.view());
    const double unit = norm(a) * static_cast<double>(a.rows) * std::numeric_limits<double>::epsilon();
    double most = 0;
    for (size_t j = 0; j < b.columns; ++j) {
        const double error = largest(&rest(0, j), b.rows);
        const double scaled = error == 0 ? 0 : error / (unit * largest(&x(0, j), x.rows));
        if (std::isnan(scaled)) return kNoNumber;
        most = std::max(most, scaled);
    }
    return most;
}

double difference(MatrixView<const double> x, MatrixView<const double> y) {
    double most = 0, largest_x = 0;
    for (size_t j = 0; j < x.columns; ++j) {
        for (size_t i = 0; i < x.rows; ++i) {
            const double apart = std::abs(x(i, j) - y(i, j));
            if (std::isnan(apart)) return kNoNumber;
            most = std::max(most, apart);
            largest_x = std::max(largest_x, std::abs(x(i, j)));
        }
    }
    return most == 0 ? 0 : most / largest_x;
}

void require_symmetric(MatrixView<const double> a, const std::string& name) {
    constexpr double kRounding = 1e-12;
    if (a.rows != a.columns)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{}: the matrix is {} x {}: a Cholesky factorisation needs a square one",
                                name, a.rows, a.columns));
    for (size_t j = 0; j < a.columns; ++j)
        for (size_t i = j + 1; i < a.rows; ++i) {
            const double below = a(i, j), above = a(j, i);
            if (std::abs(below - above) > kRounding * std::max(std::abs(below), std::abs(above)))
                throw Error(
                    ErrorCode::kBadInput,
                    fmt::format("{}: the matrix is not symmetric: element ({}, {}) is {}, ({}, {}) is {}",
                                name, i + 1, j + 1, below, j + 1, i + 1, above));
        }
}

}  // namespace heddle::algebra
