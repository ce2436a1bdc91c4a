// The tile factorisation is LAPACK's, to rounding, for any size and tile.
#include "algebra/cholesky.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "algebra/lapack.hpp"
#include "algebra/residual.hpp"
#include "algebra/test_matrices.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using test::covariance;
using testing::HasSubstr;
using testing::ThrowsMessage;

DenseMatrix lapack_factor(DenseMatrix a) {
    const int n = static_cast<int>(a.rows());
    int info = 0;
    lapack().dpotrf("L", &n, a.view().data, &n, &info, 1);
    EXPECT_EQ(info, 0);
    return a;
}

/// ‖A − L Lᵀ‖ / (‖A‖ n ε) by elements, the upper triangle of L left alone.
double factor_residual(const DenseMatrix& a, const DenseMatrix& l) {
    double most = 0, largest = 0;
    for (size_t j = 0; j < a.columns(); ++j)
        for (size_t i = j; i < a.rows(); ++i) {
            double product = 0;
            for (size_t k = 0; k <= j; ++k) product += l(i, k) * l(j, k);
            most = std::max(most, std::abs(a(i, j) - product));
            largest = std::max(largest, std::abs(a(i, j)));
        }
    return most / (largest * static_cast<double>(a.rows()) * std::numeric_limits<double>::epsilon());
}

class CholeskyTest : public testing::Test {
  protected:
    DenseMatrix factored(DenseMatrix a, size_t tile) {
        TileMatrix<double> tiles(runtime_, a.view(), tile);
        Sequence sequence(runtime_);
        cholesky_factor(sequence, tiles);
        sequence.wait();
        return a;
    }
    DenseMatrix solved(DenseMatrix a, DenseMatrix b, size_t tile) {
        TileMatrix<double> l(runtime_, a.view(), tile), x(runtime_, b.view(), tile);
        Sequence sequence(runtime_);
        cholesky_factor(sequence, l);
        cholesky_solve(sequence, l, x);
        sequence.wait();
        return b;
    }

    Runtime runtime_;
};

TEST_F(CholeskyTest, FactorsLikeLapackWhateverSizeAndTile) {
    for (const size_t n : {1, 2, 3, 7, 16, 31, 64, 100, 129, 200, 255, 300}) {
        const DenseMatrix a = covariance(n);
        const DenseMatrix expected = lapack_factor(a);
        for (const size_t tile : {size_t{1}, size_t{3}, size_t{17}, size_t{64}, size_t{101}, n, n + 5}) {
            if (n / tile > 60) continue;  // a million tasks of one number each tell nothing new
            const DenseMatrix l = factored(a, tile);
            EXPECT_LT(factor_residual(a, l), 2) << n << " in tiles of " << tile;
            for (size_t j = 0; j < n; ++j)
                for (size_t i = j; i < n; ++i)
                    ASSERT_NEAR(l(i, j), expected(i, j), 1e-12) << n << ' ' << tile;
        }
    }
}

TEST_F(CholeskyTest, LeavesTilesAboveTheDiagonalAlone) {
    const DenseMatrix a = covariance(50), l = factored(a, 10);
    for (size_t j = 10; j < 50; ++j)
        for (size_t i = 0; i < j / 10 * 10; ++i) EXPECT_EQ(l(i, j), a(i, j));
}

TEST_F(CholeskyTest, SolvesForOneAndManyRightHandSides) {
    for (const size_t n : {1, 5, 33, 100, 300})
        for (const size_t tile : {5, 33, 400})
            for (const size_t columns : {1, 4, 40}) {
                const DenseMatrix a = covariance(n), b = test::waves(n, columns);
                const DenseMatrix x = solved(a, b, tile);
                EXPECT_LT(residual(a.view(), x.view(), b.view()), 3) << n << ' ' << tile << ' ' << columns;
            }
}

TEST_F(CholeskyTest, SolvesTheLaplacianOfAGrid) {
    const DenseMatrix a = test::laplacian(17), b = test::waves(17 * 17, 3);
    EXPECT_LT(residual(a.view(), solved(a, b, 40).view(), b.view()), 1);
}

TEST_F(CholeskyTest, WorksOnTilesOfTheirOwnMemory) {
    const size_t n = 100, tile = 23;
    const DenseMatrix a = covariance(n), expected = lapack_factor(a);
    TileMatrix<double> tiles(runtime_, n, n, tile);
    const auto element = [&](size_t i, size_t j) -> double& {
        return tiles.tile(i / tile, j / tile).get()(i % tile, j % tile);
    };
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < n; ++i) element(i, j) = a(i, j);
    Sequence sequence(runtime_);
    cholesky_factor(sequence, tiles);
    sequence.wait();
    for (size_t j = 0; j < n; ++j)
        for (size_t i = j; i < n; ++i) ASSERT_NEAR(element(i, j), expected(i, j), 1e-12);
}

TEST_F(CholeskyTest, GivesTheSameBitsHoweverManyWorkers) {
    const DenseMatrix a = covariance(211), b = test::waves(211, 2);
    const DenseMatrix x = solved(a, b, 16);
    RuntimeOptions alone;
    alone.workers = 1;
    Runtime runtime(alone);
    DenseMatrix factor = a, again = b;
    TileMatrix<double> l(runtime, factor.view(), 16), y(runtime, again.view(), 16);
    Sequence sequence(runtime);
    cholesky_factor(sequence, l);
    cholesky_solve(sequence, l, y);
    sequence.wait();
    EXPECT_EQ(difference(x.view(), again.view()), 0);
}

TEST_F(CholeskyTest, NamesTheFailingPivotAndCancelsWhatDependsOnIt) {
    for (const size_t pivot : {1, 10, 11, 47, 50}) {
        DenseMatrix a = covariance(50), b = test::waves(50, 1);
        a(pivot - 1, pivot - 1) = -1;
        const DenseMatrix before = b;
        TileMatrix<double> l(runtime_, a.view(), 10), x(runtime_, b.view(), 10);
        Sequence sequence(runtime_);
        Progress progress;
        cholesky_factor(sequence, l, &progress);
        cholesky_solve(sequence, l, x, &progress);
        EXPECT_THAT([&] { sequence.wait(); },
                    ThrowsMessage<Error>(HasSubstr("pivot " + std::to_string(pivot) + " of")));
        EXPECT_LT(progress.ended, progress.inserted);
    }
}

TEST_F(CholeskyTest, FindsTheSamePivotAsLapackInTheHilbertMatrix) {
    DenseMatrix a = test::hilbert(40);
    a(14, 14) = 0;  // its factorisation breaks down about here by rounding: make it certain
    DenseMatrix copy = a;
    const int n = 40;
    int info = 0;
    lapack().dpotrf("L", &n, copy.view().data, &n, &info, 1);
    ASSERT_GT(info, 0);
    ASSERT_LE(info, 15);
    EXPECT_THAT([&] { factored(a, 40); }, ThrowsMessage<Error>(HasSubstr("pivot " + std::to_string(info))));
}

TEST_F(CholeskyTest, NumbersThatAreNoneAreAFailingPivot) {
    DenseMatrix a = covariance(30);
    a(12, 12) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THAT([&] { factored(a, 10); }, ThrowsMessage<Error>(HasSubstr("pivot 13 of")));
}

TEST_F(CholeskyTest, RefusesShapesThatDoNotFit) {
    DenseMatrix a(20, 30), b(20, 1), square = covariance(20);
    TileMatrix<double> wide(runtime_, a.view(), 10), l(runtime_, square.view(), 10), x(runtime_, b.view(), 7);
    Sequence sequence(runtime_);
    EXPECT_THAT([&] { cholesky_factor(sequence, wide); }, ThrowsMessage<Error>(HasSubstr("20 x 30")));
    EXPECT_THAT([&] { cholesky_solve(sequence, l, x); }, ThrowsMessage<Error>(HasSubstr("tiles of 7")));
}

TEST_F(CholeskyTest, CountsTheTasksThatEnded) {
    DenseMatrix a = covariance(40);
    TileMatrix<double> tiles(runtime_, a.view(), 10);
    Sequence sequence(runtime_);
    Progress progress;
    cholesky_factor(sequence, tiles, &progress);
    EXPECT_EQ(progress.inserted, 20u);
    sequence.wait();
    EXPECT_EQ(progress.ended, 20u);
}

}  // namespace
}  // namespace heddle::algebra
