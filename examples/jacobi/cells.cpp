#include "cells.hpp"

#include <algorithm>
#include <cmath>

namespace heddle::example {

double step(const Block& block, const Cells& now, Cells& next) {
    double residual = 0;
    for (size_t row = 1; row <= block.rows; ++row) {
        const double* const above = now.row(row - 1);
        const double* const here = now.row(row);
        const double* const below = now.row(row + 1);
        double* const to = next.row(row);
        for (size_t column = 1; column <= block.columns; ++column) {
            const double value = 0.25 * (above[column] + below[column] + here[column - 1] + here[column + 1]);
            residual = std::max(residual, std::abs(value - here[column]));
            to[column] = value;
        }
    }
    return residual;
}

}  // namespace heddle::example
