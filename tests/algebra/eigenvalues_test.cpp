// Eigenvalues of pencils are LAPACK's, to rounding, for any size, tile and band, and each stage keeps them.
#include "algebra/eigenvalues.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/eigen_stages.hpp"
#include "algebra/lapack.hpp"
#include "algebra/test_matrices.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

DenseMatrix symmetric_waves(size_t n) {
    DenseMatrix a(n, n);
    for (size_t j = 0; j < n; ++j)
        for (size_t i = j; i < n; ++i)
            a(i, j) = a(j, i) =
                std::sin(static_cast<double>(1 + i * j % 101 + 3 * i + 7 * (j * j % 53)) * 2.7);
    return a;
}

DenseMatrix identity(size_t n) {
    DenseMatrix a(n, n);
    for (size_t i = 0; i < n; ++i) a(i, i) = 1;
    return a;
}

std::vector<double> lapack_eigenvalues(DenseMatrix a, DenseMatrix b) {
    const int type = 1, n = static_cast<int>(a.rows()), room = 40 * n + 10, irroom = 10;
    std::vector<double> values(a.rows()), work(static_cast<size_t>(room));
    std::vector<int> iwork(10);
    int info = 0;
    lapack().dsygvd(&type, "N", "L", &n, a.view().data, &n, b.view().data, &n, values.data(), work.data(),
                    &room, iwork.data(), &irroom, &info, 1, 1);
    EXPECT_EQ(info, 0);
    return values;
}

/// The largest distance over the largest eigenvalue, in units of n ε.
double apart(const std::vector<double>& x, const std::vector<double>& y) {
    EXPECT_EQ(x.size(), y.size());
    double most = 0, largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        most = std::max(most, std::abs(x[i] - y[i]));
        largest = std::max(largest, std::abs(y[i]));
    }
    return most / (largest * static_cast<double>(x.size()) * std::numeric_limits<double>::epsilon());
}

class EigenvaluesTest : public testing::Test {
  protected:
    std::vector<double> found(const DenseMatrix& a, const DenseMatrix& b, size_t tile = 0, size_t band = 0) {
        EigenOptions options;
        options.tile = tile;
        options.band = band;
        return generalized_eigenvalues(runtime_, a.view(), b.view(), options).values;
    }
    Runtime runtime_;
};

TEST_F(EigenvaluesTest, AreThoseOfLapackWhateverTheSize) {
    for (const size_t n : {1, 2, 3, 4, 5, 7, 16, 31, 63, 64, 65, 66, 100, 127, 129, 200, 255, 300}) {
        const DenseMatrix a = symmetric_waves(n), b = test::covariance(n, 3);
        EXPECT_LT(apart(found(a, b), lapack_eigenvalues(a, b)), 100) << n;
    }
}

TEST_F(EigenvaluesTest, AreThoseOfLapackWhateverTileAndBand) {
    for (const size_t n : {10, 37, 96, 150}) {
        const DenseMatrix a = symmetric_waves(n), b = test::covariance(n, 3);
        const std::vector<double> expected = lapack_eigenvalues(a, b);
        for (const size_t band : {1, 2, 3, 5, 8, 16, 50})
            for (const size_t panels : {1, 2, 3, 7}) {
                if (n / (band * panels) > 40) continue;
                EXPECT_LT(apart(found(a, b, band * panels, band), expected), 100)
                    << n << " in tiles of " << band * panels << ", band " << band;
            }
    }
}

TEST_F(EigenvaluesTest, OfKnownMatricesAreKnown) {
    // The Laplacian of a grid against the identity: sums of two of 2 − 2 cos(k π / (side + 1)).
    const size_t side = 12;
    std::vector<double> expected;
    const auto one = [&](size_t k) { return 2 - 2 * std::cos(static_cast<double>(k) * M_PI / (side + 1)); };
    for (size_t j = 1; j <= side; ++j)
        for (size_t i = 1; i <= side; ++i) expected.push_back(one(i) + one(j));
    std::ranges::sort(expected);
    EXPECT_LT(apart(found(test::laplacian(side), identity(side * side), 32, 8), expected), 10);
    const DenseMatrix b = test::covariance(70);
    for (const double value : found(b, b)) EXPECT_NEAR(value, 1, 1e-11);
}

TEST_F(EigenvaluesTest, OfADiagonalAndOfAZeroMatrix) {
    DenseMatrix a(90, 90);
    for (const double value : found(a, identity(90), 32, 16)) EXPECT_EQ(value, 0);
    for (size_t i = 0; i < 90; ++i) a(i, i) = static_cast<double>(90 - i);
    const std::vector<double> values = found(a, identity(90), 32, 16);
    for (size_t i = 0; i < 90; ++i) EXPECT_DOUBLE_EQ(values[i], static_cast<double>(i + 1));
}

TEST_F(EigenvaluesTest, ReadTheLowerTrianglesAlone) {
    DenseMatrix a = symmetric_waves(80), b = test::covariance(80);
    const std::vector<double> before = found(a, b, 32, 8);
    for (size_t j = 0; j < 80; ++j)
        for (size_t i = 0; i < j; ++i) a(i, j) = b(i, j) = std::nan("");
    EXPECT_EQ(found(a, b, 32, 8), before);
}

TEST_F(EigenvaluesTest, HaveTheSameBitsHoweverManyWorkersAndEngines) {
    const DenseMatrix a = symmetric_waves(170), b = test::covariance(170);
    RuntimeOptions options;
    options.workers = 1;
    Runtime alone(options);
    EigenOptions eigen;
    eigen.tile = 32;
    eigen.band = 8;
    const std::vector<double> one = generalized_eigenvalues(alone, a.view(), b.view(), eigen).values;
    for (const EngineInfo& engine : Runtime::engines()) {
        if (!engine.available) continue;
        eigen.tile_engine = "native";
        eigen.chase_engine = engine.name;
        EXPECT_EQ(generalized_eigenvalues(runtime_, a.view(), b.view(), eigen).values, one) << engine.name;
        eigen.tile_engine = engine.name;
        eigen.chase_engine = "native";
        EXPECT_EQ(generalized_eigenvalues(runtime_, a.view(), b.view(), eigen).values, one) << engine.name;
    }
}

TEST_F(EigenvaluesTest, NameTheFailingPivotOfB) {
    for (const size_t pivot : {1, 33, 64, 90}) {
        DenseMatrix b = test::covariance(90);
        b(pivot - 1, pivot - 1) = -1;
        EXPECT_THAT([&] { found(symmetric_waves(90), b, 32, 8); },
                    ThrowsMessage<Error>(HasSubstr("pivot " + std::to_string(pivot) + " of")));
    }
}

TEST_F(EigenvaluesTest, RefuseWhatDoesNotFit) {
    DenseMatrix a = symmetric_waves(20);
    const DenseMatrix b = identity(20), small = identity(19), wide(20, 21);
    EXPECT_THAT([&] { found(a, small); }, ThrowsMessage<Error>(HasSubstr("A is 20 x 20, B is 19 x 19")));
    EXPECT_THAT([&] { found(wide, b); }, ThrowsMessage<Error>(HasSubstr("A is 20 x 21")));
    EXPECT_THAT([&] { found(a, b, 10, 4); }, ThrowsMessage<Error>(HasSubstr("the width divides the tile")));
    a(12, 3) = std::nan("");
    EXPECT_THAT([&] { found(a, b); }, ThrowsMessage<Error>(HasSubstr("element (13, 4) of A")));
}

/// The standard problem of a band, by LAPACK.
std::vector<double> band_eigenvalues(const SymmetricBand& band) {
    DenseMatrix full(band.size(), band.size());
    for (size_t j = 0; j < band.size(); ++j)
        for (size_t i = j; i < std::min(band.size(), j + band.width() + 1); ++i) full(i, j) = band(i, j);
    return lapack_eigenvalues(full, identity(band.size()));
}

TEST(BulgeChasing, MakesABandTridiagonalAndKeepsItsEigenvalues) {
    Runtime runtime;
    for (const size_t n : {3, 4, 10, 33, 64, 100, 201, 400})
        for (const size_t width : {2, 3, 7, 16, 40}) {
            if (width >= n) continue;
            SymmetricBand band(n, width);
            for (size_t j = 0; j < n; ++j)
                for (size_t i = j; i < std::min(n, j + width + 1); ++i)
                    band(i, j) = std::cos(static_cast<double>(i * 5 + j * j % 31));
            const std::vector<double> before = band_eigenvalues(band);
            chase_bulges(runtime, band);
            double beyond = 0;
            for (size_t j = 0; j < n; ++j)
                for (size_t i = j + 2; i < std::min(n, j + 2 * width + 1); ++i)
                    beyond = std::max(beyond, std::abs(band(i, j)));
            EXPECT_EQ(beyond, 0) << n << ' ' << width;
            EXPECT_LT(apart(band_eigenvalues(band), before), 30) << n << ' ' << width;
        }
}

}  // namespace
}  // namespace heddle::algebra
