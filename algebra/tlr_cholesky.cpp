#include "algebra/tlr_cholesky.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "algebra/cholesky_levels.hpp"
#include "algebra/task_inserter.hpp"
#include "algebra/tile_kernels.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using View = MatrixView<double>;
using ConstView = MatrixView<const double>;
using Tile = LowRankTile*;

double largest_diagonal(const ElementSource& source, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; ++i) {
        double element = 0;
        source(i, i, {&element, 1, 1, 1});
        most = std::max(most, std::abs(element));
    }
    return most;
}

void solve_below(ConstView l, Tile tile) {
    if (tile->factors->rank() > 0) solve_tile(Side::kLeft, Transpose::kNo, l, tile->factors->v.view());
}

/// C = C − (U Vᵀ) (U Vᵀ)ᵀ, all of the square tile.
void update_diagonal(const Tile& tile, View c) {
    const LowRank& a = *tile->factors;
    if (a.rank() == 0) return;
    DenseMatrix middle(a.rank(), a.rank()), left(a.u.rows(), a.rank());
    multiply_tile(1, Transpose::kYes, a.v.view(), Transpose::kNo, a.v.view(), 0, middle.view());
    multiply_tile(1, Transpose::kNo, a.u.view(), Transpose::kNo, middle.view(), 0, left.view());
    multiply_tile(-1, Transpose::kNo, left.view(), Transpose::kYes, a.u.view(), 1, c);
}

void subtract_product(const Tile& left, const Tile& right, Tile tile) {
    const LowRank &a = *left->factors, &b = *right->factors;
    if (a.rank() == 0 || b.rank() == 0) return;
    DenseMatrix middle(a.rank(), b.rank());
    multiply_tile(1, Transpose::kYes, a.v.view(), Transpose::kNo, b.v.view(), 0, middle.view());
    tile->pending.push_back({left->factors, std::move(middle), right->factors});
}

/// The factors that pending products refer to are of tiles that this one's tasks followed; who writes such a
/// tile later gives it others.
void compress_pending(Tile tile, double tolerance) {
    if (tile->pending.empty()) return;
    LowRankSum sum(*tile->factors);
    for (const PendingProduct& product : tile->pending)
        sum.subtract(*product.left, product.middle, *product.right);
    tile->factors = std::make_shared<LowRank>(sum.compress(tolerance));
    tile->pending = {};
}

}  // namespace

double tlr_compress(Sequence& sequence, const ElementSource& source, double accuracy, TlrMatrix& a,
                    Progress* progress) {
    if (!(accuracy > 0 && accuracy < 1))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("an accuracy is above 0 and below 1, not {}", accuracy));
    TaskInserter insert(sequence, progress);
    const double tolerance = accuracy * largest_diagonal(source, a.size());
    const auto shared = std::make_shared<const ElementSource>(source);
    const size_t tile = a.tile_size();
    for (size_t j = 0; j < a.tiles(); ++j) {
        insert.task(
            "generate", 0, [shared, first = j * tile](View c) { (*shared)(first, first, c); },
            out(a.diagonal(j)));
        for (size_t i = j + 1; i < a.tiles(); ++i)
            insert.task(
                "compress", 0,
                [shared, tolerance, i, j, tile, rows = a.rows_of(i)](Tile below) {
                    DenseMatrix dense(rows, tile);
                    (*shared)(i * tile, j * tile, dense.view());
                    below->pending.clear();
                    below->factors = std::make_shared<LowRank>(LowRankSum(dense.view()).compress(tolerance));
                },
                inout(a.below(i, j)));
    }
    return tolerance;
}

void tlr_factor(Sequence& sequence, TlrMatrix& a, double tolerance, Progress* progress) {
    TaskInserter insert(sequence, progress);
    const size_t tiles = a.tiles();
    const CholeskyLevels levels(tiles);
    for (size_t k = 0; k < tiles; ++k) {
        insert.task("potrf", levels.finish(k, k), factor_diagonal, inout(a.diagonal(k)),
                    value(k * a.tile_size()));
        for (size_t i = k + 1; i < tiles; ++i) {
            if (k > 0)
                insert.task("recompress", levels.finish(i, k), compress_pending, inout(a.below(i, k)),
                            value(tolerance));
            insert.task("trsm", levels.finish(i, k), solve_below, in(a.diagonal(k)), inout(a.below(i, k)));
        }
        for (size_t j = k + 1; j < tiles; ++j) {
            insert.task("syrk", levels.update(j, j, k), update_diagonal, in(a.below(j, k)),
                        inout(a.diagonal(j)));
            for (size_t i = j + 1; i < tiles; ++i)
                insert.task("gemm", levels.update(i, j, k), subtract_product, in(a.below(i, k)),
                            in(a.below(j, k)), inout(a.below(i, j)));
        }
    }
}

size_t tlr_tile_size(size_t n) {
    return std::clamp<size_t>(static_cast<size_t>(8 * std::sqrt(static_cast<double>(n))), 64, 2048);
}

}  // namespace heddle::algebra
