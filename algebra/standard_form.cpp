// C = L⁻¹ A L⁻ᵀ by tiles: LAPACK's dsygst, column by column, each update a task.
#include <fmt/format.h>

#include "algebra/eigen_stages.hpp"
#include "algebra/symmetric_kernels.hpp"
#include "algebra/task_inserter.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using View = MatrixView<double>;
using ConstView = MatrixView<const double>;

void require_shapes(const TileMatrix<double>& l, const TileMatrix<double>& a) {
    if (a.rows() != a.columns() || l.rows() != l.columns() || a.rows() != l.rows() ||
        a.tile_size() != l.tile_size())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("matrices of {} x {} in tiles of {} and {} x {} in tiles of {} make no "
                                "eigenproblem: both are square and alike",
                                a.rows(), a.columns(), a.tile_size(), l.rows(), l.columns(), l.tile_size()));
}

void subtract_half(ConstView l, ConstView a, View c) {
    multiply_symmetric_tile(Side::kRight, -0.5, a, l, c);
}

}  // namespace

void to_standard_form(Sequence& sequence, const TileMatrix<double>& l, TileMatrix<double>& a,
                      Progress* progress) {
    require_shapes(l, a);
    TaskInserter insert(sequence, progress);
    const size_t tiles = a.tile_rows();
    for (size_t k = 0; k < tiles; ++k) {
        const int urgent = static_cast<int>(tiles - k);  // steps that are still to come
        insert.task("sygst", urgent, transform_tile, in(l.tile(k, k)), inout(a.tile(k, k)));
        for (size_t i = k + 1; i < tiles; ++i) {
            insert.task(
                "trsm", urgent, [](ConstView t, View c) { solve_tile(Side::kRight, Transpose::kYes, t, c); },
                in(l.tile(k, k)), inout(a.tile(i, k)));
            insert.task("symm", urgent, subtract_half, in(l.tile(i, k)), in(a.tile(k, k)),
                        inout(a.tile(i, k)));
        }
        for (size_t j = k + 1; j < tiles; ++j) {
            const int next = urgent - static_cast<int>(j - k);
            insert.task("syr2k", next, update_symmetric_tile, in(a.tile(j, k)), in(l.tile(j, k)),
                        inout(a.tile(j, j)));
            for (size_t i = j + 1; i < tiles; ++i)
                insert.task(
                    "gemm", next,
                    [](ConstView ai, ConstView lj, ConstView li, ConstView aj, View c) {
                        multiply_tile(-1, Transpose::kNo, ai, Transpose::kYes, lj, 1, c);
                        multiply_tile(-1, Transpose::kNo, li, Transpose::kYes, aj, 1, c);
                    },
                    in(a.tile(i, k)), in(l.tile(j, k)), in(l.tile(i, k)), in(a.tile(j, k)),
                    inout(a.tile(i, j)));
        }
        // What follows is read by nobody in this stage: it fills the time of those that wait.
        for (size_t i = k + 1; i < tiles; ++i)
            insert.task("symm", 0, subtract_half, in(l.tile(i, k)), in(a.tile(k, k)), inout(a.tile(i, k)));
        for (size_t j = k + 1; j < tiles; ++j) {
            insert.task(
                "trsm", 0, [](ConstView t, View c) { solve_tile(Side::kLeft, Transpose::kNo, t, c); },
                in(l.tile(j, j)), inout(a.tile(j, k)));
            for (size_t i = j + 1; i < tiles; ++i)
                insert.task(
                    "gemm", 0,
                    [](ConstView t, ConstView x, View c) {
                        multiply_tile(-1, Transpose::kNo, t, Transpose::kNo, x, 1, c);
                    },
                    in(l.tile(i, j)), in(a.tile(j, k)), inout(a.tile(i, k)));
        }
    }
}

}  // namespace heddle::algebra
