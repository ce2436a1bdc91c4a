// Compressed tiles are within the tolerance of what they stand for, at a rank that is not much above the
// best.
#include "algebra/low_rank.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "algebra/orthogonal.hpp"
#include "algebra/test_matrices.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

DenseMatrix product(const LowRank& a) {
    DenseMatrix full(a.u.rows(), a.v.rows());
    multiply_tile(1, Transpose::kNo, a.u.view(), Transpose::kYes, a.v.view(), 0, full.view());
    return full;
}

double distance(const DenseMatrix& a, const DenseMatrix& b) {
    double sum = 0;
    for (size_t j = 0; j < a.columns(); ++j)
        for (size_t i = 0; i < a.rows(); ++i) sum += std::pow(a(i, j) - b(i, j), 2);
    return std::sqrt(sum);
}

/// A rows x columns matrix of these singular values.
DenseMatrix matrix_of(size_t rows, size_t columns, const std::vector<double>& singular) {
    const size_t rank = singular.size();
    LowRank a{test::waves(rows, rank), test::waves(columns, rank)};
    for (size_t j = 0; j < rank; ++j) {
        a.u(j, j) += 3;
        a.v(j, j) -= 4;
    }
    orthonormalise(a.u.view());
    orthonormalise(a.v.view());
    for (size_t j = 0; j < rank; ++j)
        for (size_t i = 0; i < rows; ++i) a.u(i, j) *= singular[j];
    return product(a);
}

/// With the singular values 1, 1/2, 1/4, ...
DenseMatrix halving(size_t rows, size_t columns) {
    std::vector<double> singular(std::min(rows, columns));
    for (size_t j = 0; j < singular.size(); ++j) singular[j] = std::ldexp(1.0, -static_cast<int>(j));
    return matrix_of(rows, columns, singular);
}

TEST(LowRank, IsWithinTheToleranceWhateverTheShape) {
    for (const auto& [rows, columns] :
         {std::pair<size_t, size_t>{1, 1}, {1, 40}, {40, 1}, {7, 33}, {90, 61}, {130, 130}})
        for (const double tolerance : {1e-1, 1e-4, 1e-8, 1e-13}) {
            const DenseMatrix a = halving(rows, columns);
            const LowRank b = LowRankSum(a.view()).compress(tolerance);
            EXPECT_LE(distance(a, product(b)), tolerance) << rows << ' ' << columns;
            const auto best = static_cast<size_t>(std::ceil(-std::log2(tolerance)));
            EXPECT_LE(b.rank(), std::min({rows, columns, best + 2})) << tolerance;
        }
}

/// The second step of the search finds fewer dimensions than it has vectors: what it makes of the others must
/// not be in the space of the first.
TEST(LowRank, AStepThatFindsLittleAddsNothingTwice) {
    constexpr double kLargest = 1e4, kTolerance = 1e-9;
    for (size_t size = 17; size <= 80; ++size)
        for (size_t more = 1; more <= std::min<size_t>(16, size - 16); more += 3) {
            std::vector<double> singular(16, kLargest);
            singular.resize(16 + more, 10 * kTolerance);
            const DenseMatrix a = matrix_of(size, size, singular);
            const LowRank b = LowRankSum(a.view()).compress(kTolerance);
            EXPECT_LE(distance(a, product(b)), kTolerance) << size << ' ' << more;
        }
}

TEST(LowRank, OfNothingIsNothing) {
    const DenseMatrix zero(30, 20);
    const LowRank a = LowRankSum(zero.view()).compress(1e-12);
    EXPECT_EQ(a.rank(), 0u);
    EXPECT_EQ(a.u.rows(), 30u);
    EXPECT_EQ(a.v.rows(), 20u);
    EXPECT_EQ(LowRankSum(a).compress(1e-12).rank(), 0u);
}

TEST(LowRank, KeepsAMatrixThatDoesNotCompress) {
    DenseMatrix a(50, 50);
    for (size_t i = 0; i < 50; ++i) a(i, 49 - i) = 1;
    const LowRank b = LowRankSum(a.view()).compress(1e-10);
    EXPECT_EQ(b.rank(), 50u);
    EXPECT_LT(distance(a, product(b)), 1e-12);
}

TEST(LowRank, ASumLessProductsIsOneAgain) {
    const DenseMatrix a = halving(60, 45), b = halving(60, 70), c = halving(45, 70);
    const LowRank la = LowRankSum(a.view()).compress(1e-12), lb = LowRankSum(b.view()).compress(1e-12),
                  lc = LowRankSum(c.view()).compress(1e-12);
    DenseMatrix expected = a, middle(lb.rank(), lc.rank());
    multiply_tile(-1, Transpose::kNo, b.view(), Transpose::kYes, c.view(), 1, expected.view());
    multiply_tile(1, Transpose::kYes, lb.v.view(), Transpose::kNo, lc.v.view(), 0, middle.view());
    LowRankSum sum(la);
    sum.subtract(lb, middle, lc);
    const LowRank result = sum.compress(1e-9);
    EXPECT_LT(distance(expected, product(result)), 2e-9);
    EXPECT_LT(result.rank(), 45u);
}

TEST(LowRank, ASumThatCancelsHasRankZero) {
    const DenseMatrix a = halving(40, 40), identity = [] {
        DenseMatrix unit(40, 40);
        for (size_t i = 0; i < 40; ++i) unit(i, i) = 1;
        return unit;
    }();
    const LowRank la = LowRankSum(a.view()).compress(1e-13);
    const LowRank one{identity, identity};
    DenseMatrix middle(la.rank(), 40);
    multiply_tile(1, Transpose::kYes, la.v.view(), Transpose::kNo, one.v.view(), 0, middle.view());
    LowRankSum sum(la);
    sum.subtract(la, middle, one);
    EXPECT_EQ(sum.compress(1e-9).rank(), 0u);
}

TEST(LowRank, NumbersThatAreNoneAreToldOrCarriedOnButDoNotHang) {
    DenseMatrix a = halving(40, 40);
    a(3, 4) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW((void)LowRankSum(a.view()).compress(1e-8), Error);
}

TEST(SingularValues, AreThoseOfTheMatrix) {
    DenseMatrix a = halving(20, 20);
    const DenseMatrix before = a;
    SingularValues svd = singular_values(a.view());
    for (size_t i = 0; i < 20; ++i) {
        EXPECT_NEAR(svd.values[i], std::ldexp(1.0, -static_cast<int>(i)), 1e-14);
        for (size_t row = 0; row < 20; ++row) svd.left(row, i) *= svd.values[i];
    }
    DenseMatrix again(20, 20);
    multiply_tile(1, Transpose::kNo, svd.left.view(), Transpose::kNo, svd.right.view(), 0, again.view());
    EXPECT_LT(distance(before, again), 1e-14);
}

}  // namespace
}  // namespace heddle::algebra
