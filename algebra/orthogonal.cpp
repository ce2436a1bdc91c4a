#include "algebra/orthogonal.hpp"

#include <algorithm>

#include "algebra/blas_threads.hpp"
#include "algebra/lapack.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

constexpr int kBlock = 32;  // what dgeqrf and dorgqr use

/// A = Q R; R is in A's upper triangle, Q in the rest and tau.
std::vector<double> factor(MatrixView<double> a, std::vector<double>& work) {
    const int m = static_cast<int>(a.rows), n = static_cast<int>(a.columns),
              lda = static_cast<int>(a.leading);
    const int size = std::max(1, n * kBlock);
    work.resize(static_cast<size_t>(size));
    std::vector<double> tau(a.columns);
    int info = 0;
    lapack().dgeqrf(&m, &n, a.data, &lda, tau.data(), work.data(), &size, &info);
    return tau;
}

void form_q(MatrixView<double> a, const std::vector<double>& tau, std::vector<double>& work) {
    const int m = static_cast<int>(a.rows), n = static_cast<int>(a.columns),
              lda = static_cast<int>(a.leading);
    const int size = static_cast<int>(work.size());
    int info = 0;
    lapack().dorgqr(&m, &n, &n, a.data, &lda, tau.data(), work.data(), &size, &info);
}

}  // namespace

void orthonormalise(MatrixView<double> a) {
    const BlasThreads one(1);
    std::vector<double> work;
    const std::vector<double> tau = factor(a, work);
    form_q(a, tau, work);
}

DenseMatrix orthonormalise_with_r(MatrixView<double> a) {
    const BlasThreads one(1);
    std::vector<double> work;
    const std::vector<double> tau = factor(a, work);
    DenseMatrix r(a.columns, a.columns);
    for (size_t j = 0; j < a.columns; ++j)
        for (size_t i = 0; i <= j; ++i) r(i, j) = a(i, j);
    form_q(a, tau, work);
    return r;
}

SingularValues singular_values(MatrixView<double> a) {
    SingularValues svd{DenseMatrix(a.rows, a.rows), std::vector<double>(a.rows), DenseMatrix(a.rows, a.rows)};
    if (a.rows == 0) return svd;
    const BlasThreads one(1);
    const int n = static_cast<int>(a.rows), lda = static_cast<int>(a.leading);
    const int ask = -1;
    int info = 0;
    double size = 0;
    std::vector<int> iwork(8 * a.rows);
    lapack().dgesdd("S", &n, &n, a.data, &lda, svd.values.data(), svd.left.view().data, &n,
                    svd.right.view().data, &n, &size, &ask, iwork.data(), &info, 1);
    std::vector<double> work(static_cast<size_t>(size));
    const int room = static_cast<int>(work.size());
    lapack().dgesdd("S", &n, &n, a.data, &lda, svd.values.data(), svd.left.view().data, &n,
                    svd.right.view().data, &n, work.data(), &room, iwork.data(), &info, 1);
    if (info != 0)
        throw Error(ErrorCode::kBadInput, "a tile has no singular values: it holds what is no number");
    return svd;
}

}  // namespace heddle::algebra
