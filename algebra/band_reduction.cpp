// A symmetric matrix to a band, panel by panel: a panel is as many columns as the band is wide, its part
// below the band is A Q = R, and the rest becomes Qᵀ A Q = A − V Wᵀ − W Vᵀ with W = A V T − ½ V (Tᵀ Vᵀ A V
// T). Tiles are larger than panels, so that nearly all of the work is products of large tiles.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "algebra/eigen_stages.hpp"
#include "algebra/symmetric_kernels.hpp"
#include "algebra/task_inserter.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using View = MatrixView<double>;
using ConstView = MatrixView<const double>;

// The next panel waits for its column of tiles alone, so that goes before the other updates.
enum Priority : int { kRest = 0, kProducts = 1, kNextColumn = 2, kPanel = 3 };

template <class V>
V block(V a, size_t row, size_t column, size_t rows, size_t columns) {
    return {a.data + row + column * a.leading, rows, columns, a.leading};
}

void fill_zero(View a) {
    for (size_t j = 0; j < a.columns; ++j) std::fill_n(&a(0, j), a.rows, 0.0);
}

void copy(ConstView from, View to) {
    for (size_t j = 0; j < from.columns; ++j) std::copy_n(&from(0, j), from.rows, &to(0, j));
}

/// The rows of a tile that belong to what is left of the matrix.
struct Rows {
    size_t first;  ///< in the tile
    size_t count;
    size_t below;  ///< how far under the panel's first row
};

/// V = the reflectors, whole, and T of the panel's QR; R goes into the band. In rows from 0 of `v` is what
/// is below the band.
void factor_panel(View v, View t, View band) {
    const size_t width = v.columns, reflectors = std::min(v.rows, width);
    const auto to_band = [&](size_t first, size_t last) {
        for (size_t j = first; j < last; ++j)
            for (size_t i = 0; i <= std::min(j, v.rows - 1); ++i) band(width + i - j, j) = v(i, j);
    };
    fill_zero(t);
    reflect_tile(block(v, 0, 0, v.rows, reflectors), block(t, 0, 0, reflectors, reflectors));
    to_band(0, reflectors);
    for (size_t j = 0; j < reflectors; ++j) {
        std::fill_n(&v(0, j), j, 0.0);
        v(j, j) = 1;
    }
    if (reflectors == width) return;
    // Fewer rows than columns: the other columns are full, and there is no reflector for them.
    const View q = block(v, 0, 0, v.rows, reflectors);
    const View rest = block(v, 0, reflectors, v.rows, width - reflectors);
    DenseMatrix inner(reflectors, rest.columns), outer(reflectors, rest.columns);
    multiply_tile(1, Transpose::kYes, q, Transpose::kNo, rest, 0, inner.view());
    multiply_tile(1, Transpose::kYes, block(t, 0, 0, reflectors, reflectors), Transpose::kNo, inner.view(), 0,
                  outer.view());
    multiply_tile(-1, Transpose::kNo, q, Transpose::kNo, outer.view(), 1, rest);
    to_band(reflectors, width);
    fill_zero(rest);
}

/// S = ½ Tᵀ S T.
void half_middle(ConstView t, View s) {
    DenseMatrix product(s.rows, s.columns);
    multiply_tile(1, Transpose::kNo, s, Transpose::kNo, t, 0, product.view());
    multiply_tile(0.5, Transpose::kYes, t, Transpose::kNo, product.view(), 0, s);
}

class Reduction {
  public:
    Reduction(Runtime& runtime, Sequence& sequence, TileMatrix<double>& a, SymmetricBand& band,
              Progress* progress)
        : insert_(sequence, progress),
          a_(a),
          n_(a.rows()),
          width_(band.width()),
          v_(runtime, n_, width_),
          t_(runtime, width_, width_),
          s_(runtime, width_, width_) {
        for (size_t i = 0; i < a.tile_rows(); ++i) {
            x_.emplace_back(runtime, a.tile_size(), width_);
            p_.emplace_back(runtime, a.tile_size(), 3 * width_);
        }
        for (size_t j = 0; j < n_; j += width_)
            band_.emplace_back(runtime, block(band.view(), 0, j, 2 * width_ + 1, std::min(width_, n_ - j)));
    }

    void run() {
        for (size_t panel = 0; panel < band_.size(); ++panel) {
            column_ = panel * width_;
            first_ = column_ + width_;
            copy_diagonal(band_[panel]);
            if (first_ >= n_) continue;
            start_ = first_ / a_.tile_size();
            factor(band_[panel]);
            if (first_ + 1 >= n_) continue;
            multiply();
            pack();
            update();
        }
    }

  private:
    [[nodiscard]] Rows rows(size_t i) const {
        const size_t tile = a_.tile_size(), end = std::min(n_, (i + 1) * tile);
        const size_t begin = std::max(first_, i * tile);
        return {begin - i * tile, end - begin, begin - first_};
    }

    void copy_diagonal(Matrix<double>& band) {
        const size_t tile = column_ / a_.tile_size(), first = column_ % a_.tile_size();
        insert_.task(
            "band", kPanel,
            [first](ConstView a, View to) {
                for (size_t j = 0; j < to.columns; ++j)
                    for (size_t i = j; i < to.columns; ++i) to(i - j, j) = a(first + i, first + j);
            },
            in(a_.tile(tile, tile)), inout(band));
    }

    void factor(Matrix<double>& band) {
        const size_t tile = column_ / a_.tile_size(), first = column_ % a_.tile_size();
        for (size_t i = start_; i < a_.tile_rows(); ++i)
            insert_.task(
                "gather", kPanel,
                [r = rows(i), first, width = width_](ConstView a, View v) {
                    copy(block(a, r.first, first, r.count, width), block(v, r.below, 0, r.count, width));
                },
                in(a_.tile(i, tile)), inout(v_));
        insert_.task(
            "geqrt", kPanel,
            [left = n_ - first_](View v, View t, View to) {
                factor_panel(block(v, 0, 0, left, v.columns), t, to);
            },
            inout(v_), inout(t_), inout(band));
    }

    /// X = A V, and S = Vᵀ X.
    void multiply() {
        for (size_t i = start_; i < a_.tile_rows(); ++i) {
            for (size_t j = start_; j < a_.tile_rows(); ++j)
                insert_.task(
                    "symm", kProducts,
                    [ri = rows(i), rj = rows(j), i, j, fresh = j == start_](ConstView a, ConstView v,
                                                                            View x) {
                        const View to = block(x, 0, 0, ri.count, x.columns);
                        const ConstView by = block(v, rj.below, 0, rj.count, v.columns);
                        if (fresh) fill_zero(to);
                        if (i == j)
                            multiply_symmetric_tile(Side::kLeft, 1,
                                                    block(a, ri.first, ri.first, ri.count, ri.count), by, to);
                        else if (i > j)
                            multiply_tile(1, Transpose::kNo, block(a, ri.first, rj.first, ri.count, rj.count),
                                          Transpose::kNo, by, 1, to);
                        else
                            multiply_tile(1, Transpose::kYes,
                                          block(a, rj.first, ri.first, rj.count, ri.count), Transpose::kNo,
                                          by, 1, to);
                    },
                    in(a_.tile(std::max(i, j), std::min(i, j))), in(v_), inout(x_[i]));
            insert_.task(
                "middle", kProducts,
                [r = rows(i), fresh = i == start_](ConstView v, ConstView x, View s) {
                    multiply_tile(1, Transpose::kYes, block(v, r.below, 0, r.count, v.columns),
                                  Transpose::kNo, block(x, 0, 0, r.count, x.columns), fresh ? 0 : 1, s);
                },
                in(v_), in(x_[i]), inout(s_));
        }
        insert_.task("middle", kPanel, half_middle, in(t_), inout(s_));
    }

    /// P = V, W, V: its first two thirds times its last two, transposed, are V Wᵀ + W Vᵀ.
    void pack() {
        for (size_t i = start_; i < a_.tile_rows(); ++i)
            insert_.task(
                "pack", kPanel,
                [r = rows(i)](ConstView v, ConstView t, ConstView s, ConstView x, View p) {
                    const size_t width = t.columns;
                    const ConstView from = block(v, r.below, 0, r.count, width);
                    const View w = block(p, 0, width, r.count, width);
                    copy(from, block(p, 0, 0, r.count, width));
                    copy(from, block(p, 0, 2 * width, r.count, width));
                    multiply_tile(1, Transpose::kNo, block(x, 0, 0, r.count, width), Transpose::kNo, t, 0, w);
                    multiply_tile(-1, Transpose::kNo, from, Transpose::kNo, s, 1, w);
                },
                in(v_), in(t_), in(s_), in(x_[i]), inout(p_[i]));
    }

    void update() {
        for (size_t j = start_; j < a_.tile_rows(); ++j) {
            const int priority = j == first_ / a_.tile_size() ? kNextColumn : kRest;
            insert_.task(
                "syr2k", priority,
                [r = rows(j), width = width_](ConstView p, View c) {
                    update_symmetric_tile(block(p, 0, 0, r.count, width), block(p, 0, width, r.count, width),
                                          block(c, r.first, r.first, r.count, r.count));
                },
                in(p_[j]), inout(a_.tile(j, j)));
            for (size_t i = j + 1; i < a_.tile_rows(); ++i)
                insert_.task(
                    "gemm", priority,
                    [ri = rows(i), rj = rows(j), width = width_](ConstView pi, ConstView pj, View c) {
                        multiply_tile(-1, Transpose::kNo, block(pi, 0, 0, ri.count, 2 * width),
                                      Transpose::kYes, block(pj, 0, width, rj.count, 2 * width), 1,
                                      block(c, ri.first, rj.first, ri.count, rj.count));
                    },
                    in(p_[i]), in(p_[j]), inout(a_.tile(i, j)));
        }
    }

    TaskInserter insert_;
    TileMatrix<double>& a_;
    size_t n_, width_;
    size_t column_ = 0, first_ = 0, start_ = 0;  // of the panel; below it; the tile that is in
    Matrix<double> v_, t_, s_;
    std::vector<Matrix<double>> x_, p_;  // a tile of rows each
    std::vector<Matrix<double>> band_;   // a panel of columns each
};

}  // namespace

void reduce_to_band(Runtime& runtime, TileMatrix<double>& a, SymmetricBand& band, Progress* progress) {
    const bool panels_fit = a.tile_rows() == 1 || a.tile_size() % band.width() == 0;
    if (a.rows() != a.columns() || a.rows() != band.size() || !panels_fit)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a matrix of {} x {} in tiles of {} is not reduced to a band of {} columns "
                                "and width {}: the width divides the tile",
                                a.rows(), a.columns(), a.tile_size(), band.size(), band.width()));
    Sequence sequence(runtime);
    Reduction reduction(runtime, sequence, a, band, progress);
    reduction.run();
    sequence.wait();
}

}  // namespace heddle::algebra
