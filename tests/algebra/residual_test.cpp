// What the measures of a solution say of right, wrong and broken ones.
#include "algebra/residual.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "algebra/test_matrices.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ResidualTest, IsZeroForExactAndLargeForWrongSolutions) {
    DenseMatrix a(2, 2), x(2, 1), b(2, 1);
    a(0, 0) = 4, a(1, 1) = 2;
    x(0, 0) = 1, x(1, 0) = 3;
    b(0, 0) = 4, b(1, 0) = 6;
    EXPECT_EQ(residual(a.view(), x.view(), b.view()), 0);
    x(1, 0) = 2;  // off by 2 in b; |A| = 4, |x| = 2, n = 2
    EXPECT_DOUBLE_EQ(residual(a.view(), x.view(), b.view()),
                     2 / (4. * 2 * 2 * std::numeric_limits<double>::epsilon()));
    x(1, 0) = std::nan("");
    EXPECT_TRUE(std::isnan(residual(a.view(), x.view(), b.view())));
    x(0, 0) = x(1, 0) = 0;
    EXPECT_TRUE(std::isinf(residual(a.view(), x.view(), b.view())));
}

TEST(ResidualTest, DifferencesAreRelativeToTheLargest) {
    DenseMatrix x(2, 1), y(2, 1);
    EXPECT_EQ(difference(x.view(), y.view()), 0);
    x(0, 0) = 8, y(0, 0) = 8, y(1, 0) = 2;
    EXPECT_EQ(difference(x.view(), y.view()), 0.25);
    y(1, 0) = std::nan("");
    EXPECT_TRUE(std::isnan(difference(x.view(), y.view())));
}

TEST(ResidualTest, MatricesThatAreNotSymmetricAreRefused) {
    DenseMatrix a = test::covariance(5);
    EXPECT_NO_THROW(require_symmetric(a.view(), "a.mtx"));
    a(3, 1) *= 1 + 1e-14;
    EXPECT_NO_THROW(require_symmetric(a.view(), "a.mtx"));
    a(3, 1) = 7;
    EXPECT_THAT(
        [&] { require_symmetric(a.view(), "a.mtx"); },
        ThrowsMessage<Error>(HasSubstr("a.mtx: the matrix is not symmetric: element (4, 2) is 7, (2, 4)")));
    EXPECT_THAT([] { require_symmetric(DenseMatrix(3, 4).view(), "b.mtx"); },
                ThrowsMessage<Error>(HasSubstr("3 x 4")));
}

}  // namespace
}  // namespace heddle::algebra
