#include "algebra/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "algebra/orthogonal.hpp"

namespace heddle::algebra {
namespace {

using View = MatrixView<double>;
using ConstView = MatrixView<const double>;

/// Columns in a step of the search; so many also estimate what is left.
constexpr size_t kStep = 16;

ConstView first_columns(const DenseMatrix& a, size_t columns) {
    return {a.view().data, a.rows(), columns, a.rows()};
}
View columns_of(DenseMatrix& a, size_t first, size_t columns) {
    return {a.view().data + first * a.rows(), a.rows(), columns, a.rows()};
}

/// Signs without a pattern: E‖A x‖² = ‖A‖² in the Frobenius norm.
void fill_signs(View x, size_t first_column) {
    for (size_t j = 0; j < x.columns; ++j) {
        uint64_t state = (first_column + j + 1) * 0x9e3779b97f4a7c15U;
        for (size_t i = 0; i < x.rows; ++i) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            x(i, j) = (state >> 40 & 1) != 0 ? 1 : -1;
        }
    }
}

/// Y − Q (Qᵀ Y), of as many columns of Q as there are. Returns the largest element of Qᵀ Y.
double project_out(ConstView q, View y) {
    if (q.columns == 0) return 0;
    DenseMatrix shadow(q.columns, y.columns);
    multiply_tile(1, Transpose::kYes, q, Transpose::kNo, y, 0, shadow.view());
    multiply_tile(-1, Transpose::kNo, q, Transpose::kNo, shadow.view(), 1, y);
    double most = 0;
    for (size_t j = 0; j < y.columns; ++j)
        for (size_t i = 0; i < q.columns; ++i) most = std::max(most, std::abs(shadow(i, j)));
    return most;
}

/// Of Y's columns, which were projected out of Q's space, a basis that is orthogonal to Q: columns that were
/// all but gone are mostly rounding when they have length 1, and lie in that space once more.
void complete_basis(ConstView q, View y) {
    constexpr double kOrthogonal = 1e-14;
    constexpr int kMostTimes = 10;  // twice, unless Y has fewer dimensions than columns
    orthonormalise(y);
    for (int times = 1; project_out(q, y) > kOrthogonal && times < kMostTimes; ++times) orthonormalise(y);
}

/// The Frobenius norm of what Y's columns are products with random signs of.
double estimated_norm(ConstView y) {
    double sum = 0;
    for (size_t j = 0; j < y.columns; ++j)
        for (size_t i = 0; i < y.rows; ++i) sum += y(i, j) * y(i, j);
    return std::sqrt(sum / static_cast<double>(y.columns));
}

/// How many of the singular values to keep so that the rest is within the tolerance.
size_t rank_within(std::span<const double> singular, double tolerance) {
    double rest = 0;
    size_t rank = singular.size();
    while (rank > 0 && rest + singular[rank - 1] * singular[rank - 1] <= tolerance * tolerance) {
        --rank;
        rest += singular[rank] * singular[rank];
    }
    return rank;
}

}  // namespace

LowRankSum::LowRankSum(ConstView dense)
    : rows_(dense.rows), columns_(dense.columns), expected_rank_(0), dense_(dense) {}

LowRankSum::LowRankSum(const LowRank& base)
    : rows_(base.u.rows()),
      columns_(base.v.rows()),
      expected_rank_(base.rank()),
      base_u_(base.u.view()),
      base_v_(base.v.view()) {}

void LowRankSum::subtract(const LowRank& left, const DenseMatrix& middle, const LowRank& right) {
    if (left.rank() == 0 || right.rank() == 0) return;
    products_.push_back({left.u.view(), middle.view(), right.u.view()});
    expected_rank_ = std::max(expected_rank_, std::min(left.rank(), right.rank()));
}

/// Y = op(sum) X.
void LowRankSum::apply(Transpose op, ConstView x, View y) const {
    const bool forward = op == Transpose::kNo;
    if (dense_.data != nullptr) {
        multiply_tile(1, op, dense_, Transpose::kNo, x, 0, y);
    } else {
        DenseMatrix inner(base_u_.columns, x.columns);
        multiply_tile(1, Transpose::kYes, forward ? base_v_ : base_u_, Transpose::kNo, x, 0, inner.view());
        multiply_tile(1, Transpose::kNo, forward ? base_u_ : base_v_, Transpose::kNo, inner.view(), 0, y);
    }
    for (const Product& product : products_) {
        const ConstView from = forward ? product.right : product.left;
        const ConstView to = forward ? product.left : product.right;
        DenseMatrix inner(from.columns, x.columns), outer(to.columns, x.columns);
        multiply_tile(1, Transpose::kYes, from, Transpose::kNo, x, 0, inner.view());
        multiply_tile(1, op, product.middle, Transpose::kNo, inner.view(), 0, outer.view());
        multiply_tile(-1, Transpose::kNo, to, Transpose::kNo, outer.view(), 1, y);
    }
}

LowRank LowRankSum::compress(double tolerance) const {
    // Half of the tolerance, in squares, is for what the search leaves out, half for what is cut afterwards.
    const double share = tolerance / std::sqrt(2.0);
    const size_t most = std::min(rows_, columns_);
    DenseMatrix q(rows_, most);
    size_t found = 0;
    for (size_t asked = std::max(expected_rank_, kStep); found < most; asked = kStep) {
        const size_t step = std::min(asked, most - found);
        DenseMatrix signs(columns_, step);
        fill_signs(signs.view(), found);
        const View y = columns_of(q, found, step);
        apply(Transpose::kNo, signs.view(), y);
        project_out(first_columns(q, found), y);
        // Fewer vectors than a step's estimate nothing well; they are the last that there is room for.
        if (step >= kStep && 2 * estimated_norm(y) <= share) break;
        complete_basis(first_columns(q, found), y);
        found += step;
    }
    // sum ≈ Q (sumᵀ Q)ᵀ = Q (W R)ᵀ = Q Rᵀ Wᵀ, and Rᵀ is small.
    DenseMatrix w(columns_, found);
    apply(Transpose::kYes, first_columns(q, found), w.view());
    DenseMatrix r = orthonormalise_with_r(w.view());
    SingularValues svd = singular_values(r.view());  // R = X S Yᵀ, so that the sum ≈ (Q Y S) (W X)ᵀ
    const size_t rank = rank_within(svd.values, share);
    LowRank result{DenseMatrix(rows_, rank), DenseMatrix(columns_, rank)};
    multiply_tile(1, Transpose::kNo, first_columns(q, found), Transpose::kYes,
                  {svd.right.view().data, rank, found, svd.right.rows()}, 0, result.u.view());
    for (size_t j = 0; j < rank; ++j)
        for (size_t i = 0; i < found; ++i) svd.left(i, j) *= svd.values[j];
    multiply_tile(1, Transpose::kNo, w.view(), Transpose::kNo, first_columns(svd.left, rank), 0,
                  result.v.view());
    return result;
}

}  // namespace heddle::algebra
