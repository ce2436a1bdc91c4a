// substitute(): solves L Lᵀ X = B with a factor in tiles, once forward and once back; X comes in B's place.
//
// For factors whose tiles below the diagonal are kept in different ways. One thread inserts.
#pragma once

#include <fmt/format.h>

#include <cstddef>

#include "algebra/task_inserter.hpp"
#include "algebra/tile_kernels.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {

/// Throws kInvalidArgument where B does not have the rows and tiles of a matrix of `rows` rows.
inline void require_equal_rows(const TileMatrix<double>& b, size_t rows, size_t tile_size) {
    if (b.rows() == rows && b.tile_size() == tile_size) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the right-hand side has {} rows in tiles of {}, the matrix {} in tiles of {}: "
                            "they must be equal",
                            b.rows(), b.tile_size(), rows, tile_size));
}

/// L has B's rows and tiles: diagonal(k) and below(i, k), i > k, refer to them as data of tasks. In a task,
/// subtract(op, tile, x, y) does Y = Y − op(tile) X with one that is below the diagonal.
template <class Diagonal, class Below, class Subtract>
void substitute(TaskInserter& insert, TileMatrix<double>& b, const Diagonal& diagonal, const Below& below,
                const Subtract& subtract) {
    using View = MatrixView<double>;
    using ConstView = MatrixView<const double>;
    const auto solve = [](Transpose op) {
        return [op](ConstView l, View x) { solve_tile(Side::kLeft, op, l, x); };
    };
    const auto update = [subtract](Transpose op) {
        return [op, subtract](const auto& l, ConstView x, View y) { subtract(op, l, x, y); };
    };
    const size_t tiles = b.tile_rows();
    // Rows to go, once forward and once back: what comes first in the order of insertion goes first.
    const auto level = [tiles](size_t passed) { return static_cast<int>(2 * tiles - passed); };
    for (size_t column = 0; column < b.tile_columns(); ++column) {
        for (size_t k = 0; k < tiles; ++k) {
            insert.task("trsm", level(k), solve(Transpose::kNo), in(diagonal(k)), inout(b.tile(k, column)));
            for (size_t i = k + 1; i < tiles; ++i)
                insert.task("gemm", level(i), update(Transpose::kNo), in(below(i, k)), in(b.tile(k, column)),
                            inout(b.tile(i, column)));
        }
        for (size_t k = tiles; k-- > 0;) {
            insert.task("trsm", level(2 * tiles - 1 - k), solve(Transpose::kYes), in(diagonal(k)),
                        inout(b.tile(k, column)));
            for (size_t i = k; i-- > 0;)
                insert.task("gemm", level(2 * tiles - 1 - i), update(Transpose::kYes), in(below(k, i)),
                            in(b.tile(k, column)), inout(b.tile(i, column)));
        }
    }
}

}  // namespace heddle::algebra
