#include "algebra/symmetric_kernels.hpp"

#include "algebra/blas_threads.hpp"
#include "algebra/lapack.hpp"

namespace heddle::algebra {

void multiply_symmetric_tile(Side side, double alpha, MatrixView<const double> a, MatrixView<const double> b,
                             MatrixView<double> c) {
    const BlasThreads one(1);
    const int m = lapack_size(c.rows), n = lapack_size(c.columns), lda = lapack_size(a.leading),
              ldb = lapack_size(b.leading), ldc = lapack_size(c.leading);
    const double beta = 1;
    const char where = static_cast<char>(side);
    lapack().dsymm(&where, "L", &m, &n, &alpha, a.data, &lda, b.data, &ldb, &beta, c.data, &ldc, 1, 1);
}

void update_symmetric_tile(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c) {
    const BlasThreads one(1);
    const int n = lapack_size(c.rows), k = lapack_size(a.columns), lda = lapack_size(a.leading),
              ldb = lapack_size(b.leading), ldc = lapack_size(c.leading);
    const double alpha = -1, beta = 1;
    lapack().dsyr2k("L", "N", &n, &k, &alpha, a.data, &lda, b.data, &ldb, &beta, c.data, &ldc, 1, 1);
}

void transform_tile(MatrixView<const double> l, MatrixView<double> a) {
    const BlasThreads one(1);
    const int type = 1, n = lapack_size(a.rows), lda = lapack_size(a.leading), ldl = lapack_size(l.leading);
    int info = 0;
    lapack().dsygst(&type, "L", &n, a.data, &lda, l.data, &ldl, &info, 1);
}

void reflect_tile(MatrixView<double> a, MatrixView<double> t) {
    const BlasThreads one(1);
    const int m = lapack_size(a.rows), n = lapack_size(a.columns), lda = lapack_size(a.leading),
              ldt = lapack_size(t.leading);
    int info = 0;
    lapack().dgeqrt3(&m, &n, a.data, &lda, t.data, &ldt, &info);
    for (size_t j = 0; j < t.columns; ++j)
        for (size_t i = j + 1; i < t.rows; ++i) t(i, j) = 0;
}

}  // namespace heddle::algebra
