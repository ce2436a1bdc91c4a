// The work itself: one round over one row.
#pragma once

#include <cstddef>
#include <vector>

#include "library.hpp"

struct Image {
    explicit Image(const Smoothing& of)
        : rows(static_cast<size_t>(of.rows)), columns(static_cast<size_t>(of.columns)), now(rows * columns) {
        for (size_t i = 0; i < now.size(); ++i) now[i] = static_cast<double>(i % 17);
        next = now;
    }
    /// From `now` to `next`.
    void smooth_row(size_t row) {
        const size_t above = row == 0 ? row : row - 1, below = row + 1 == rows ? row : row + 1;
        for (size_t j = 0; j < columns; ++j) {
            const size_t left = j == 0 ? j : j - 1, right = j + 1 == columns ? j : j + 1;
            next[row * columns + j] =
                (now[row * columns + j] * 4 + now[above * columns + j] + now[below * columns + j] +
                 now[row * columns + left] + now[row * columns + right]) /
                8;
        }
    }
    [[nodiscard]] double sum() const {
        double total = 0;
        for (const double value : now) total += value;
        return total;
    }

    size_t rows, columns;
    std::vector<double> now, next;
};
