#include "algebra/cholesky_levels.hpp"

#include <algorithm>

namespace heddle::algebra {

CholeskyLevels::CholeskyLevels(size_t tiles) : tiles_(tiles), finish_(tiles * tiles) {
    // A column needs the levels of those to its right alone.
    for (size_t j = tiles; j-- > 0;) {
        int after = 0;
        for (size_t i = j + 1; i < tiles; ++i) after = std::max(after, finish_[i + j * tiles] = solve(i, j));
        finish_[j + j * tiles] = kFactor + after;
    }
}

/// What tile (i, j) is read for once it is solved: updates of row i to the right, and of column i.
int CholeskyLevels::solve(size_t i, size_t j) const {
    int after = update(i, i, j);
    for (size_t column = j + 1; column < i; ++column) after = std::max(after, update(i, column, j));
    for (size_t row = i + 1; row < tiles_; ++row) after = std::max(after, update(row, i, j));
    return kSolve + after;
}

}  // namespace heddle::algebra
