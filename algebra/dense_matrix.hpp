// DenseMatrix: a column-major matrix with memory of its own, as files are read into.
//
// A value type without a runtime: Matrix and TileMatrix go over its view. One thread, like a vector.
#pragma once

#include <cstddef>
#include <vector>

#include "heddle/data.hpp"

namespace heddle::algebra {

class DenseMatrix {
  public:
    DenseMatrix() = default;
    /// Zeroed. Throws std::bad_alloc.
    DenseMatrix(size_t rows, size_t columns) : rows_(rows), columns_(columns), values_(rows * columns) {}

    [[nodiscard]] size_t rows() const { return rows_; }
    [[nodiscard]] size_t columns() const { return columns_; }
    double& operator()(size_t i, size_t j) { return values_[i + j * rows_]; }
    double operator()(size_t i, size_t j) const { return values_[i + j * rows_]; }
    [[nodiscard]] MatrixView<double> view() { return {values_.data(), rows_, columns_, rows_}; }
    [[nodiscard]] MatrixView<const double> view() const { return {values_.data(), rows_, columns_, rows_}; }

  private:
    size_t rows_ = 0, columns_ = 0;
    std::vector<double> values_;
};

/// A vector as a matrix of one column.
[[nodiscard]] inline MatrixView<const double> column(const std::vector<double>& x) {
    return {x.data(), x.size(), 1, x.size()};
}

}  // namespace heddle::algebra
