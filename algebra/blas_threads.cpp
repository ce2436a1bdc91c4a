#include "algebra/blas_threads.hpp"

#include <mutex>

#include "algebra/lapack.hpp"

namespace heddle::algebra {
namespace {

constexpr int kOwnThreads = 1, kOpenMp = 2;  // what openblas_get_parallel() answers

/// The one number of an OpenBLAS with threads of its own.
struct Shared {
    std::mutex mutex;
    int holders = 0;
    int before = 0;
};
Shared shared;

}  // namespace

BlasThreads::BlasThreads(int threads) {
    const Lapack& blas = lapack();
    const int kind = blas.openblas_parallel == nullptr ? 0 : blas.openblas_parallel();
    if (kind == kOpenMp && blas.omp_threads != nullptr && blas.omp_set_threads != nullptr) {
        before_ = blas.omp_threads();
        blas.omp_set_threads(threads);
    } else if (kind == kOwnThreads && blas.openblas_threads != nullptr &&
               blas.openblas_set_threads != nullptr) {
        shared_ = true;
        const std::lock_guard guard(shared.mutex);
        if (shared.holders++ > 0) return;
        shared.before = blas.openblas_threads();
        blas.openblas_set_threads(threads);
    }
}

BlasThreads::~BlasThreads() {
    if (before_ > 0) lapack().omp_set_threads(before_);
    if (!shared_) return;
    const std::lock_guard guard(shared.mutex);
    if (--shared.holders == 0) lapack().openblas_set_threads(shared.before);
}

}  // namespace heddle::algebra
