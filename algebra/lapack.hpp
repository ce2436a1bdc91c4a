// Lapack: the functions of a BLAS and LAPACK that the algorithms call, found when the first of them runs.
//
// OpenBLAS is no library that heddle links to: it is looked for with dlopen(3), so that programs which do
// no algebra neither load nor need it, and one binary runs where it is missing. HEDDLE_LAPACK in the
// environment names another library to take them from. The names and arguments are Fortran's: column-major,
// each argument by its address, the lengths of the letters at the end.
//
// Any thread may call; what is found stays loaded until the process ends.
#pragma once

#include <cstddef>
#include <string>

namespace heddle::algebra {

struct Lapack {
    using Size = const int*;
    using Letter = const char*;
    using In = const double*;

    void (*dgemm)(Letter transpose_a, Letter transpose_b, Size m, Size n, Size k, In alpha, In a, Size lda,
                  In b, Size ldb, In beta, double* c, Size ldc, size_t, size_t);
    void (*dsyrk)(Letter triangle, Letter transpose, Size n, Size k, In alpha, In a, Size lda, In beta,
                  double* c, Size ldc, size_t, size_t);
    void (*dtrsm)(Letter side, Letter triangle, Letter transpose, Letter diagonal, Size m, Size n, In alpha,
                  In a, Size lda, double* b, Size ldb, size_t, size_t, size_t, size_t);
    void (*dsymm)(Letter side, Letter triangle, Size m, Size n, In alpha, In a, Size lda, In b, Size ldb,
                  In beta, double* c, Size ldc, size_t, size_t);
    void (*dsyr2k)(Letter triangle, Letter transpose, Size n, Size k, In alpha, In a, Size lda, In b,
                   Size ldb, In beta, double* c, Size ldc, size_t, size_t);
    void (*dsygst)(Size type, Letter triangle, Size n, double* a, Size lda, In b, Size ldb, int* info,
                   size_t);
    void (*dgeqrt3)(Size m, Size n, double* a, Size lda, double* t, Size ldt, int* info);
    void (*dlarfg)(Size n, double* alpha, double* x, Size step, double* tau);
    void (*dgemv)(Letter transpose, Size m, Size n, In alpha, In a, Size lda, In x, Size step_x, In beta,
                  double* y, Size step_y, size_t);
    void (*dger)(Size m, Size n, In alpha, In x, Size step_x, In y, Size step_y, double* a, Size lda);
    void (*dsymv)(Letter triangle, Size n, In alpha, In a, Size lda, In x, Size step_x, In beta, double* y,
                  Size step_y, size_t);
    void (*dsyr2)(Letter triangle, Size n, In alpha, In x, Size step_x, In y, Size step_y, double* a,
                  Size lda, size_t);
    void (*dsterf)(Size n, double* diagonal, double* beside, int* info);
    void (*dsygvd)(Size type, Letter job, Letter triangle, Size n, double* a, Size lda, double* b, Size ldb,
                   double* w, double* work, Size lwork, int* iwork, Size liwork, int* info, size_t, size_t);
    void (*dgeqrf)(Size m, Size n, double* a, Size lda, double* tau, double* work, Size lwork, int* info);
    void (*dorgqr)(Size m, Size n, Size k, double* a, Size lda, In tau, double* work, Size lwork, int* info);
    void (*dgesdd)(Letter job, Size m, Size n, double* a, Size lda, double* s, double* u, Size ldu,
                   double* vt, Size ldvt, double* work, Size lwork, int* iwork, int* info, size_t);
    void (*dpotrf)(Letter triangle, Size n, double* a, Size lda, int* info, size_t);
    void (*dpotrs)(Letter triangle, Size n, Size columns, In a, Size lda, double* b, Size ldb, int* info,
                   size_t);

    /// OpenBLAS alone has these; null elsewhere. 0: no threads, 1: threads of its own, 2: OpenMP's.
    int (*openblas_parallel)();
    int (*openblas_threads)();
    void (*openblas_set_threads)(int);
    /// Of the OpenMP that OpenBLAS uses, where it does.
    int (*omp_threads)();
    void (*omp_set_threads)(int);

    std::string file;  ///< as it was asked for
};

/// Throws kUnavailable where there is no library, or one that lacks a function: the message says how to get
/// one.
[[nodiscard]] const Lapack& lapack();

/// Rows, columns or a leading dimension as LAPACK takes them. Throws kLimit for more than an int holds.
[[nodiscard]] int lapack_size(size_t value);

}  // namespace heddle::algebra
