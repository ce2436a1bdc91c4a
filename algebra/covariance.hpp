// ExponentialCovariance: the covariance of a random field at points of the unit square, as a matrix whose
// elements are made when they are asked for.
//
// The points are a grid of √n x √n cells with a point somewhere in each, in Morton order: neighbours in the
// square are near in the matrix, which is what makes tiles away from the diagonal compressible. The same n
// gives the same points everywhere. Immutable; any thread.
//
// Source: the exponential kernel, the Matérn function of smoothness 1/2, of geostatistics; Morton, "A
// computer oriented geodetic data base" (1966).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "heddle/data.hpp"

namespace heddle::algebra {

/// Fills a part of a symmetric matrix: the element (i, j) of the view is (first_row + i, first_column + j).
/// Called by tasks, several at once.
using ElementSource = std::function<void(size_t first_row, size_t first_column, MatrixView<double> part)>;

struct Point {
    double x, y;
};

/// So many points in Morton order. Throws std::bad_alloc.
[[nodiscard]] std::vector<Point> morton_points(size_t count);

class ExponentialCovariance {
  public:
    /// exp(−distance / reach), 1 on the diagonal.
    explicit ExponentialCovariance(size_t points, double reach = 0.1);

    [[nodiscard]] size_t size() const { return points_.size(); }
    void fill(size_t first_row, size_t first_column, MatrixView<double> part) const;

  private:
    std::vector<Point> points_;
    double reach_;
};

}  // namespace heddle::algebra
