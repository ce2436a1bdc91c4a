#include "cells.hpp"

#include <algorithm>
#include <cmath>

namespace heddle::example {
namespace {

/// `keeps(cell)`: whether a cell stays as it is; they are counted row after row.
template <class Keeps>
double step_but(const Block& block, const Cells& now, Cells& next, const Keeps& keeps) {
    double residual = 0;
    size_t cell = 0;
    for (size_t row = 1; row <= block.rows; ++row) {
        const double* const above = now.row(row - 1);
        const double* const here = now.row(row);
        const double* const below = now.row(row + 1);
        double* const to = next.row(row);
        for (size_t column = 1; column <= block.columns; ++column, ++cell) {
            const double mean = 0.25 * (above[column] + below[column] + here[column - 1] + here[column + 1]);
            const double value = keeps(cell) ? here[column] : mean;
            residual = std::max(residual, std::abs(value - here[column]));
            to[column] = value;
        }
    }
    return residual;
}

}  // namespace

double step(const Block& block, const Cells& now, Cells& next) {
    return step_but(block, now, next, [](size_t) { return false; });
}

double step(const Block& block, const Cells& now, Cells& next, const std::vector<bool>& kept) {
    return step_but(block, now, next, [&](size_t cell) { return static_cast<bool>(kept[cell]); });
}

}  // namespace heddle::example
