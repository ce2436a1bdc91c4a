#include "algebra/cholesky.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/cholesky_levels.hpp"
#include "algebra/substitution.hpp"
#include "algebra/task_inserter.hpp"
#include "algebra/tile_kernels.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using View = MatrixView<double>;
using ConstView = MatrixView<const double>;

void require_square(const TileMatrix<double>& a) {
    if (a.rows() != a.columns())
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("a matrix of {} x {} elements has no Cholesky factorisation: it must be square",
                        a.rows(), a.columns()));
}

}  // namespace

void cholesky_factor(Sequence& sequence, TileMatrix<double>& a, Progress* progress) {
    require_square(a);
    TaskInserter insert(sequence, progress);
    const size_t tiles = a.tile_rows();
    const CholeskyLevels levels(tiles);
    for (size_t k = 0; k < tiles; ++k) {
        insert.task("potrf", levels.finish(k, k), factor_diagonal, inout(a.tile(k, k)),
                    value(k * a.tile_size()));
        for (size_t i = k + 1; i < tiles; ++i)
            insert.task(
                "trsm", levels.finish(i, k),
                [](ConstView l, View b) { solve_tile(Side::kRight, Transpose::kYes, l, b); },
                in(a.tile(k, k)), inout(a.tile(i, k)));
        for (size_t j = k + 1; j < tiles; ++j) {
            insert.task("syrk", levels.update(j, j, k), update_diagonal_tile, in(a.tile(j, k)),
                        inout(a.tile(j, j)));
            for (size_t i = j + 1; i < tiles; ++i)
                insert.task(
                    "gemm", levels.update(i, j, k),
                    [](ConstView x, ConstView y, View c) {
                        multiply_tile(-1, Transpose::kNo, x, Transpose::kYes, y, 1, c);
                    },
                    in(a.tile(i, k)), in(a.tile(j, k)), inout(a.tile(i, j)));
        }
    }
}

void cholesky_solve(Sequence& sequence, const TileMatrix<double>& l, TileMatrix<double>& b,
                    Progress* progress) {
    require_square(l);
    require_equal_rows(b, l.rows(), l.tile_size());
    TaskInserter insert(sequence, progress);
    substitute(
        insert, b, [&](size_t k) -> const auto& { return l.tile(k, k); },
        [&](size_t i, size_t k) -> const auto& { return l.tile(i, k); },
        [](Transpose op, ConstView t, ConstView x, View y) {
            multiply_tile(-1, op, t, Transpose::kNo, x, 1, y);
        });
}

size_t cholesky_tile_size(size_t n, int workers) {
    if (workers <= 1) return std::max<size_t>(n, 1);
    return std::clamp<size_t>(n * 5 / 32, 64, 640);
}

}  // namespace heddle::algebra
