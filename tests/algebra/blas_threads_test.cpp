// Kernels keep to one thread, and nobody else's setting stays changed.
#include "algebra/blas_threads.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "algebra/lapack.hpp"
#include "algebra/test_matrices.hpp"
#include "algebra/tile_kernels.hpp"

namespace heddle::algebra {
namespace {

long threads_now() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// What OpenBLAS would use for a call of this thread; 1 for a library that has no such setting.
int setting() {
    const Lapack& blas = lapack();
    if (blas.openblas_parallel == nullptr || blas.openblas_parallel() == 0) return 1;
    return blas.openblas_parallel() == 2 ? blas.omp_threads() : blas.openblas_threads();
}

TEST(BlasThreadsTest, PutsTheSettingBack) {
    const int before = setting();
    {
        const BlasThreads one(1);
        EXPECT_EQ(setting(), 1);
        const BlasThreads nested(1);
        EXPECT_EQ(setting(), 1);
    }
    EXPECT_EQ(setting(), before);
}

TEST(BlasThreadsTest, OtherThreadsKeepTheirsWhereOpenMpCounts) {
    if (lapack().openblas_parallel == nullptr || lapack().openblas_parallel() != 2)
        GTEST_SKIP() << "this BLAS has one setting for all threads";
    lapack().omp_set_threads(3);
    std::thread([] { EXPECT_NE(setting(), 1); }).join();
    std::thread([] { const BlasThreads one(1); }).join();
    EXPECT_EQ(setting(), 3);
}

[[noreturn]] void exit_with_threads_started() {
    DenseMatrix a = test::covariance(600);
    DenseMatrix b = a;
    (void)lapack();
    const long before = threads_now();
    multiply_tile(1, Transpose::kNo, a.view(), Transpose::kYes, a.view(), 0, b.view());
    (void)factor_tile(a.view());
    std::exit(static_cast<int>(threads_now() - before));
}

// In a process of its own, where no earlier call has started threads.
TEST(BlasThreadsDeathTest, KernelsStartNoThreads) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(exit_with_threads_started(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::algebra
