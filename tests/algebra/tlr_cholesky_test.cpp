// The compressed factorisation solves covariance matrices to the accuracy that was asked for.
#include "algebra/tlr_cholesky.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "algebra/lapack.hpp"
#include "algebra/residual.hpp"
#include "algebra/test_matrices.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

ElementSource source_of(const DenseMatrix& a) {
    return [&a](size_t first_row, size_t first_column, MatrixView<double> part) {
        for (size_t j = 0; j < part.columns; ++j)
            for (size_t i = 0; i < part.rows; ++i) part(i, j) = a(first_row + i, first_column + j);
    };
}

DenseMatrix field_covariance(size_t n) {
    DenseMatrix a(n, n);
    ExponentialCovariance(n).fill(0, 0, a.view());
    return a;
}

class TlrCholeskyTest : public testing::Test {
  protected:
    struct Solved {
        DenseMatrix x;
        RankStatistics ranks;
        double backward_error;
    };
    static Solved solved(Runtime& runtime, const DenseMatrix& a, DenseMatrix b, size_t tile,
                         double accuracy) {
        TlrMatrix l(runtime, a.rows(), tile);
        TileMatrix<double> x(runtime, b.view(), tile);
        Sequence sequence(runtime);
        const double tolerance = tlr_compress(sequence, source_of(a), accuracy, l);
        tlr_factor(sequence, l, tolerance);
        tlr_solve(sequence, l, x);
        sequence.wait();
        return {b, l.ranks(), tlr_backward_error(source_of(a), l)};
    }
    Solved solved(const DenseMatrix& a, const DenseMatrix& b, size_t tile, double accuracy) {
        return solved(runtime_, a, b, tile, accuracy);
    }

    Runtime runtime_;
};

TEST_F(TlrCholeskyTest, ErrorsAreWithinTheAccuracyWhateverSizeAndTile) {
    for (const size_t n : {1, 2, 30, 101, 400, 513})
        for (const size_t tile : {10, 64, 128, 600}) {
            if (n / tile > 30) continue;
            const DenseMatrix a = field_covariance(n);
            for (const double accuracy : {1e-3, 1e-6, 1e-10})
                EXPECT_LE(solved(a, test::waves(n, 1), tile, accuracy).backward_error, accuracy)
                    << n << ' ' << tile;
        }
}

TEST_F(TlrCholeskyTest, SolvesLikeLapackAtTheHighestAccuracy) {
    const size_t n = 300;
    const DenseMatrix a = field_covariance(n), b = test::waves(n, 70);
    const Solved tlr = solved(a, b, 64, 1e-15);
    DenseMatrix factor = a, expected = b;
    const int size = static_cast<int>(n), columns = 70;
    int info = 0;
    lapack().dpotrf("L", &size, factor.view().data, &size, &info, 1);
    lapack().dpotrs("L", &size, &columns, factor.view().data, &size, expected.view().data, &size, &info, 1);
    EXPECT_LT(residual(a.view(), tlr.x.view(), b.view()), kResidualLimit);
    EXPECT_LT(difference(expected.view(), tlr.x.view()), 1e-11);
}

TEST_F(TlrCholeskyTest, ALowerAccuracyTakesLowerRanksAndLessMemory) {
    const DenseMatrix a = field_covariance(1600), b = test::waves(1600, 1);
    const Solved rough = solved(a, b, 200, 1e-3), fine = solved(a, b, 200, 1e-9);
    EXPECT_LT(rough.ranks.average, 0.6 * fine.ranks.average);
    EXPECT_LT(rough.ranks.bytes, fine.ranks.bytes);
    EXPECT_LT(fine.ranks.bytes, 1600 * 1600 * sizeof(double) / 2);
    EXPECT_GT(rough.backward_error, fine.backward_error);
}

TEST_F(TlrCholeskyTest, ADiagonalMatrixHasRanksOfZero) {
    DenseMatrix a(50, 50), b = test::waves(50, 2);
    for (size_t i = 0; i < 50; ++i) a(i, i) = static_cast<double>(i + 1);
    const Solved solution = solved(a, b, 10, 1e-8);
    EXPECT_EQ(solution.ranks.largest, 0u);
    for (size_t i = 0; i < 50; ++i) EXPECT_DOUBLE_EQ(solution.x(i, 1), b(i, 1) / a(i, i));
}

TEST_F(TlrCholeskyTest, FactorsAMatrixThatDoesNotCompress) {
    DenseMatrix a = test::waves(120, 120), b = test::waves(120, 1);
    for (size_t j = 0; j < 120; ++j)
        for (size_t i = 0; i <= j; ++i) a(j, i) = a(i, j) = i == j ? 120 : a(i, j) + (i * j % 7 == 0 ? 1 : 0);
    const Solved solution = solved(a, b, 30, 1e-14);
    EXPECT_LT(residual(a.view(), solution.x.view(), b.view()), 100);
}

TEST_F(TlrCholeskyTest, GivesTheSameBitsHoweverManyWorkers) {
    const DenseMatrix a = field_covariance(500), b = test::waves(500, 3);
    RuntimeOptions options;
    options.workers = 1;
    Runtime alone(options);
    const Solved one = solved(alone, a, b, 60, 1e-7);
    for (int repeat = 0; repeat < 3; ++repeat)
        EXPECT_EQ(difference(one.x.view(), solved(a, b, 60, 1e-7).x.view()), 0);
}

TEST_F(TlrCholeskyTest, AMatrixMayBeCompressedAndFactoredAgain) {
    const DenseMatrix a = field_covariance(200);
    TlrMatrix l(runtime_, 200, 40);
    Sequence sequence(runtime_);
    for (int repeat = 0; repeat < 3; ++repeat) {
        tlr_factor(sequence, l, tlr_compress(sequence, source_of(a), 1e-8, l));
        sequence.wait();
        EXPECT_LT(tlr_backward_error(source_of(a), l), 1e-8);
    }
}

/// What was subtracted from one tile may be compressed after the next matrix has replaced the tiles it came
/// from.
TEST_F(TlrCholeskyTest, AMatrixMayBeCompressedAgainBeforeItWasFactored) {
    const DenseMatrix first = field_covariance(300), last = test::covariance(300);
    TlrMatrix l(runtime_, 300, 20);
    Sequence sequence(runtime_);
    for (const DenseMatrix* a : {&first, &last, &first, &last, &first})
        tlr_factor(sequence, l, tlr_compress(sequence, source_of(*a), 1e-8, l));
    sequence.wait();
    EXPECT_LT(tlr_backward_error(source_of(first), l), 1e-8);
}

TEST_F(TlrCholeskyTest, NamesTheFailingPivot) {
    for (const size_t pivot : {1, 10, 11, 47, 50}) {
        DenseMatrix a = test::covariance(50);
        a(pivot - 1, pivot - 1) = -1;
        EXPECT_THAT([&] { solved(a, test::waves(50, 1), 10, 1e-8); },
                    ThrowsMessage<Error>(HasSubstr("pivot " + std::to_string(pivot) + " of")));
    }
}

TEST_F(TlrCholeskyTest, AnErrorOfTheSourceReachesTheWait) {
    TlrMatrix l(runtime_, 100, 20);
    Sequence sequence(runtime_);
    const ElementSource source = [](size_t i, size_t j, MatrixView<double> part) {
        if (i == 40 && j == 20) throw Error(ErrorCode::kSystem, "no element");
        for (size_t d = 0; i == j && d < part.rows; ++d) part(d, d) = 1;
    };
    tlr_factor(sequence, l, tlr_compress(sequence, source, 1e-8, l));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<Error>(HasSubstr("no element")));
}

TEST_F(TlrCholeskyTest, RefusesWhatDoesNotFit) {
    EXPECT_THROW(TlrMatrix(runtime_, 0, 10), Error);
    EXPECT_THROW(TlrMatrix(runtime_, 10, 0), Error);
    TlrMatrix l(runtime_, 20, 10);
    Sequence sequence(runtime_);
    for (const double accuracy : {0.0, -1.0, 1.0, std::nan("")})
        EXPECT_THAT(
            [&] {
                (void)tlr_compress(
                    sequence, [](size_t, size_t, MatrixView<double> part) { part(0, 0) = 1; }, accuracy, l);
            },
            ThrowsMessage<Error>(HasSubstr("an accuracy is above 0 and below 1")));
    DenseMatrix b(20, 1);
    TileMatrix<double> x(runtime_, b.view(), 7);
    EXPECT_THAT([&] { tlr_solve(sequence, l, x); }, ThrowsMessage<Error>(HasSubstr("tiles of 7")));
}

TEST(Covariance, PointsAreInMortonOrderAndNoTwoAreOne) {
    const std::vector<Point> points = morton_points(1000);
    double along = 0;
    for (size_t p = 0; p < points.size(); ++p) {
        EXPECT_TRUE(points[p].x > 0 && points[p].x < 1 && points[p].y > 0 && points[p].y < 1);
        if (p == 0) continue;
        const double step = std::hypot(points[p].x - points[p - 1].x, points[p].y - points[p - 1].y);
        EXPECT_GT(step, 0.001);
        along += step;
    }
    // Neighbours in the order are near: in a random order they are 0.52 apart.
    EXPECT_LT(along / 1000, 0.1);
}

TEST(Covariance, IsSymmetricAndOneOnTheDiagonalInEveryPart) {
    const ExponentialCovariance covariance(100);
    DenseMatrix whole(100, 100), part(20, 30);
    covariance.fill(0, 0, whole.view());
    covariance.fill(70, 10, part.view());
    for (size_t j = 0; j < 30; ++j)
        for (size_t i = 0; i < 20; ++i) EXPECT_EQ(part(i, j), whole(70 + i, 10 + j));
    require_symmetric(whole.view(), "covariance");
    for (size_t i = 0; i < 100; ++i) EXPECT_EQ(whole(i, i), 1);
}

}  // namespace
}  // namespace heddle::algebra
