#include "algebra/covariance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace heddle::algebra {
namespace {

/// The bits of a number with a zero before each.
uint64_t spread(uint32_t value) {
    uint64_t bits = value;
    bits = (bits | bits << 16) & 0x0000ffff0000ffffU;
    bits = (bits | bits << 8) & 0x00ff00ff00ff00ffU;
    bits = (bits | bits << 4) & 0x0f0f0f0f0f0f0f0fU;
    bits = (bits | bits << 2) & 0x3333333333333333U;
    bits = (bits | bits << 1) & 0x5555555555555555U;
    return bits;
}

/// A number of [0, 1) for each index, without a pattern (SplitMix64's mixing).
double scattered(uint64_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

std::vector<Point> morton_points(size_t count) {
    const auto side = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
    std::vector<std::pair<uint64_t, Point>> ordered(count);
    for (size_t p = 0; p < count; ++p) {
        const size_t column = p % side, row = p / side;
        // Within the middle eight tenths of its cell, so that no two points are one.
        const auto place = [&](size_t cell, uint64_t number) {
            return (static_cast<double>(cell) + 0.1 + 0.8 * scattered(number)) / static_cast<double>(side);
        };
        ordered[p] = {spread(static_cast<uint32_t>(column)) | spread(static_cast<uint32_t>(row)) << 1,
                      {place(column, 2 * p), place(row, 2 * p + 1)}};
    }
    std::ranges::sort(ordered, {}, [](const auto& point) { return point.first; });
    std::vector<Point> points(count);
    std::ranges::transform(ordered, points.begin(), [](const auto& point) { return point.second; });
    return points;
}

ExponentialCovariance::ExponentialCovariance(size_t points, double reach)
    : points_(morton_points(points)), reach_(reach) {}

void ExponentialCovariance::fill(size_t first_row, size_t first_column, MatrixView<double> part) const {
    for (size_t j = 0; j < part.columns; ++j) {
        const Point to = points_[first_column + j];
        for (size_t i = 0; i < part.rows; ++i) {
            const Point from = points_[first_row + i];
            const double dx = from.x - to.x, dy = from.y - to.y;
            part(i, j) = std::exp(-std::sqrt(dx * dx + dy * dy) / reach_);
        }
    }
}

}  // namespace heddle::algebra
