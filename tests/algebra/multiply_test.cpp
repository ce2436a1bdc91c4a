// The product of tiles is the product of matrices.
#include "algebra/multiply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algebra/residual.hpp"
#include "algebra/test_matrices.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

DenseMatrix by_definition(double alpha, const DenseMatrix& a, const DenseMatrix& b, double beta,
                          DenseMatrix c) {
    for (size_t j = 0; j < c.columns(); ++j)
        for (size_t i = 0; i < c.rows(); ++i) {
            double sum = 0;
            for (size_t k = 0; k < a.columns(); ++k) sum += a(i, k) * b(k, j);
            c(i, j) = alpha * sum + beta * c(i, j);
        }
    return c;
}

TEST(MultiplyTest, IsTheProductForAllShapes) {
    Runtime runtime;
    struct Shape {
        size_t m, n, k, tile;
    };
    for (const Shape& s : {Shape{1, 1, 1, 1}, Shape{7, 5, 9, 3}, Shape{64, 64, 64, 16}, Shape{50, 3, 120, 32},
                           Shape{130, 77, 41, 200}}) {
        DenseMatrix a = test::waves(s.m, s.k), b = test::waves(s.k, s.n), c = test::waves(s.m, s.n);
        const DenseMatrix expected = by_definition(1.5, a, b, -0.5, c);
        TileMatrix<double> ta(runtime, a.view(), s.tile), tb(runtime, b.view(), s.tile),
            tc(runtime, c.view(), s.tile);
        Sequence sequence(runtime);
        multiply(sequence, 1.5, ta, tb, -0.5, tc);
        sequence.wait();
        EXPECT_LT(difference(expected.view(), c.view()), 1e-13) << s.m << 'x' << s.n << 'x' << s.k;
    }
}

TEST(MultiplyTest, RefusesWhatDoesNotFit) {
    Runtime runtime;
    DenseMatrix a(10, 20), b(20, 30);
    TileMatrix<double> x(runtime, a.view(), 5), y(runtime, b.view(), 5), other(runtime, b.view(), 6),
        square(runtime, 10, 10, 5), product(runtime, 10, 30, 5);
    Sequence sequence(runtime);
    EXPECT_THAT([&] { multiply(sequence, 1, x, x, 0, product); }, ThrowsMessage<Error>(HasSubstr("10 x 20")));
    EXPECT_THAT([&] { multiply(sequence, 1, x, other, 0, product); },
                ThrowsMessage<Error>(HasSubstr("tiles of 5, 6 and 5")));
    EXPECT_THAT([&] { multiply(sequence, 1, square, square, 0, square); },
                ThrowsMessage<Error>(HasSubstr("of its own")));
}

}  // namespace
}  // namespace heddle::algebra
