#include "algebra/multiply.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/lapack.hpp"
#include "algebra/tile_kernels.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using View = MatrixView<double>;
using ConstView = MatrixView<const double>;

void require_shapes(const TileMatrix<double>& a, const TileMatrix<double>& b, const TileMatrix<double>& c) {
    if (a.columns() != b.rows() || a.rows() != c.rows() || b.columns() != c.columns())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{} x {} times {} x {} elements is not {} x {}", a.rows(), a.columns(),
                                b.rows(), b.columns(), c.rows(), c.columns()));
    if (a.tile_size() != b.tile_size() || a.tile_size() != c.tile_size())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("matrices in tiles of {}, {} and {}: they must be equal", a.tile_size(),
                                b.tile_size(), c.tile_size()));
    if (&c == &a || &c == &b)
        throw Error(ErrorCode::kInvalidArgument, "the product is written to a matrix of its own");
}

}  // namespace

void multiply(Sequence& sequence, double alpha, const TileMatrix<double>& a, const TileMatrix<double>& b,
              double beta, TileMatrix<double>& c) {
    require_shapes(a, b, c);
    (void)lapack();  // missing: told here, and not by each task
    for (size_t j = 0; j < c.tile_columns(); ++j)
        for (size_t i = 0; i < c.tile_rows(); ++i)
            for (size_t k = 0; k < a.tile_columns(); ++k)
                sequence.insert(
                    {.name = "gemm"},
                    [alpha, beta = k == 0 ? beta : 1.0](ConstView x, ConstView y, View z) {
                        multiply_tile(alpha, Transpose::kNo, x, Transpose::kNo, y, beta, z);
                    },
                    in(a.tile(i, k)), in(b.tile(k, j)), inout(c.tile(i, j)));
}

size_t multiply_tile_size(size_t n, int workers) {
    if (workers <= 1) return std::max<size_t>(n, 1);
    return std::clamp<size_t>(n / (workers <= 2 ? 2 : 4), 64, 2048);
}

}  // namespace heddle::algebra
