#include "algebra/symmetric_kernels.hpp"

#include "algebra/blas_threads.hpp"
#include "algebra/lapack.hpp"

namespace heddle::algebra {
namespace {

int size(size_t value) {
    return static_cast<int>(value);
}

}  // namespace

void multiply_symmetric_tile(Side side, double alpha, MatrixView<const double> a, MatrixView<const double> b,
                             MatrixView<double> c) {
    const BlasThreads one(1);
    const int m = size(c.rows), n = size(c.columns), lda = size(a.leading), ldb = size(b.leading),
              ldc = size(c.leading);
    const double beta = 1;
    const char where = static_cast<char>(side);
    lapack().dsymm(&where, "L", &m, &n, &alpha, a.data, &lda, b.data, &ldb, &beta, c.data, &ldc, 1, 1);
}

void update_symmetric_tile(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c) {
    const BlasThreads one(1);
    const int n = size(c.rows), k = size(a.columns), lda = size(a.leading), ldb = size(b.leading),
              ldc = size(c.leading);
    const double alpha = -1, beta = 1;
    lapack().dsyr2k("L", "N", &n, &k, &alpha, a.data, &lda, b.data, &ldb, &beta, c.data, &ldc, 1, 1);
}

void transform_tile(MatrixView<const double> l, MatrixView<double> a) {
    const BlasThreads one(1);
    const int type = 1, n = size(a.rows), lda = size(a.leading), ldl = size(l.leading);
    int info = 0;
    lapack().dsygst(&type, "L", &n, a.data, &lda, l.data, &ldl, &info, 1);
}

void reflect_tile(MatrixView<double> a, MatrixView<double> t) {
    const BlasThreads one(1);
    const int m = size(a.rows), n = size(a.columns), lda = size(a.leading), ldt = size(t.leading);
    int info = 0;
    lapack().dgeqrt3(&m, &n, a.data, &lda, t.data, &ldt, &info);
    for (size_t j = 0; j < t.columns; ++j)
        for (size_t i = j + 1; i < t.rows; ++i) t(i, j) = 0;
}

}  // namespace heddle::algebra
