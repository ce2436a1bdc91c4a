// Systems of equations with a tile-low-rank factor, and how far the factor is from its matrix.
#include <cmath>

#include "algebra/substitution.hpp"
#include "algebra/task_inserter.hpp"
#include "algebra/tile_kernels.hpp"
#include "algebra/tlr_cholesky.hpp"

namespace heddle::algebra {
namespace {

using View = MatrixView<double>;
using ConstView = MatrixView<const double>;
using Tile = LowRankTile*;

/// Y = Y + alpha op(U Vᵀ) X.
void add_product(double alpha, Transpose op, const LowRank& a, ConstView x, View y) {
    if (a.rank() == 0) return;
    const bool forward = op == Transpose::kNo;
    DenseMatrix inner(a.rank(), x.columns);
    multiply_tile(1, Transpose::kYes, (forward ? a.v : a.u).view(), Transpose::kNo, x, 0, inner.view());
    multiply_tile(alpha, Transpose::kNo, (forward ? a.u : a.v).view(), Transpose::kNo, inner.view(), 1, y);
}

View rows_of(View x, const TlrMatrix& l, size_t k) {
    return {&x(k * l.tile_size(), 0), l.rows_of(k), x.columns, x.leading};
}

/// L's own part of a diagonal tile: what is above the diagonal is left over.
DenseMatrix lower(ConstView tile) {
    DenseMatrix l(tile.rows, tile.columns);
    for (size_t j = 0; j < tile.columns; ++j)
        for (size_t i = j; i < tile.rows; ++i) l(i, j) = tile(i, j);
    return l;
}

/// Y = L Lᵀ X.
DenseMatrix multiply_factor(const TlrMatrix& l, DenseMatrix x) {
    DenseMatrix z(x.rows(), x.columns()), y(x.rows(), x.columns());
    for (size_t k = 0; k < l.tiles(); ++k) {
        const DenseMatrix diagonal = lower(l.diagonal(k).get());
        multiply_tile(1, Transpose::kYes, diagonal.view(), Transpose::kNo, rows_of(x.view(), l, k), 0,
                      rows_of(z.view(), l, k));
        for (size_t i = k + 1; i < l.tiles(); ++i)
            add_product(1, Transpose::kYes, *l.below(i, k).get()->factors, rows_of(x.view(), l, i),
                        rows_of(z.view(), l, k));
        multiply_tile(1, Transpose::kNo, diagonal.view(), Transpose::kNo, rows_of(z.view(), l, k), 1,
                      rows_of(y.view(), l, k));
        for (size_t i = k + 1; i < l.tiles(); ++i)
            add_product(1, Transpose::kNo, *l.below(i, k).get()->factors, rows_of(z.view(), l, k),
                        rows_of(y.view(), l, i));
    }
    return y;
}

/// Y = Y − A X, and the sum of squares of A's elements.
double subtract_source(const ElementSource& source, const TlrMatrix& l, View x, View y) {
    double squares = 0;
    for (size_t j = 0; j < l.tiles(); ++j)
        for (size_t i = j; i < l.tiles(); ++i) {
            DenseMatrix part(l.rows_of(i), l.rows_of(j));
            source(i * l.tile_size(), j * l.tile_size(), part.view());
            double sum = 0;
            for (size_t column = 0; column < part.columns(); ++column)
                for (size_t row = 0; row < part.rows(); ++row) sum += part(row, column) * part(row, column);
            squares += i == j ? sum : 2 * sum;
            multiply_tile(-1, Transpose::kNo, part.view(), Transpose::kNo, rows_of(x, l, j), 1,
                          rows_of(y, l, i));
            if (i != j)
                multiply_tile(-1, Transpose::kYes, part.view(), Transpose::kNo, rows_of(x, l, i), 1,
                              rows_of(y, l, j));
        }
    return squares;
}

}  // namespace

void tlr_solve(Sequence& sequence, const TlrMatrix& l, TileMatrix<double>& b, Progress* progress) {
    require_equal_rows(b, l.size(), l.tile_size());
    TaskInserter insert(sequence, progress);
    substitute(
        insert, b, [&](size_t k) -> const auto& { return l.diagonal(k); },
        [&](size_t i, size_t k) -> const auto& { return l.below(i, k); },
        [](Transpose op, const Tile& t, ConstView x, View y) { add_product(-1, op, *t->factors, x, y); });
}

double tlr_backward_error(const ElementSource& source, const TlrMatrix& l) {
    constexpr size_t kVectors = 8;
    DenseMatrix x(l.size(), kVectors);
    uint64_t state = 0x9e3779b97f4a7c15U;
    for (size_t j = 0; j < kVectors; ++j)
        for (size_t i = 0; i < l.size(); ++i) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            x(i, j) = (state >> 63) != 0 ? 1 : -1;
        }
    DenseMatrix rest = multiply_factor(l, x);
    const double norm = std::sqrt(subtract_source(source, l, x.view(), rest.view()));
    double squares = 0;
    for (size_t j = 0; j < kVectors; ++j)
        for (size_t i = 0; i < l.size(); ++i) squares += rest(i, j) * rest(i, j);
    return std::sqrt(squares / kVectors) / norm;
}

}  // namespace heddle::algebra
