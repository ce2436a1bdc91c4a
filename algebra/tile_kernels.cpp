#include "algebra/tile_kernels.hpp"

#include <algorithm>
#include <cmath>

#include "algebra/blas_threads.hpp"
#include "algebra/lapack.hpp"

namespace heddle::algebra {
namespace {

char letter(Transpose op) {
    return static_cast<char>(op);
}

}  // namespace

size_t factor_tile(MatrixView<double> a) {
    const BlasThreads one(1);
    const int n = lapack_size(a.rows), leading = lapack_size(a.leading);
    int info = 0;
    lapack().dpotrf("L", &n, a.data, &leading, &info, 1);
    if (info > 0) return static_cast<size_t>(info);
    // OpenBLAS lets a pivot pass that is no number.
    for (size_t i = 0; i < a.rows; ++i)
        if (!std::isfinite(a(i, i))) return i + 1;
    return 0;
}

void solve_tile(Side side, Transpose op, MatrixView<const double> l, MatrixView<double> b) {
    const BlasThreads one(1);
    const int m = lapack_size(b.rows), n = lapack_size(b.columns), ldl = lapack_size(l.leading),
              ldb = lapack_size(b.leading);
    const double alpha = 1;
    const char where = static_cast<char>(side), transpose = letter(op);
    lapack().dtrsm(&where, "L", &transpose, "N", &m, &n, &alpha, l.data, &ldl, b.data, &ldb, 1, 1, 1, 1);
}

void update_diagonal_tile(MatrixView<const double> a, MatrixView<double> c) {
    const BlasThreads one(1);
    const int n = lapack_size(c.rows), k = lapack_size(a.columns), lda = lapack_size(a.leading),
              ldc = lapack_size(c.leading);
    const double alpha = -1, beta = 1;
    lapack().dsyrk("L", "N", &n, &k, &alpha, a.data, &lda, &beta, c.data, &ldc, 1, 1);
}

void multiply_tile(double alpha, Transpose op_a, MatrixView<const double> a, Transpose op_b,
                   MatrixView<const double> b, double beta, MatrixView<double> c) {
    const BlasThreads one(1);
    const int m = lapack_size(c.rows), n = lapack_size(c.columns),
              k = lapack_size(op_a == Transpose::kNo ? a.columns : a.rows);
    // Of a tile without rows it is 0, which LAPACK does not take, whatever else there is to do.
    const auto leading = [](const auto& view) { return lapack_size(std::max<size_t>(view.leading, 1)); };
    const int lda = leading(a), ldb = leading(b), ldc = leading(c);
    const char transpose_a = letter(op_a), transpose_b = letter(op_b);
    lapack().dgemm(&transpose_a, &transpose_b, &m, &n, &k, &alpha, a.data, &lda, b.data, &ldb, &beta, c.data,
                   &ldc, 1, 1);
}

}  // namespace heddle::algebra
