#include <fmt/format.h>

#include <chrono>

#include "algebra/blas_threads.hpp"
#include "algebra/eigenvalues.hpp"
#include "algebra/lapack.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {

LapackEigenvalues eigenvalues_by_lapack(DenseMatrix a, DenseMatrix b, int workers) {
    const BlasThreads threads(workers);
    const int type = 1, n = static_cast<int>(a.rows()), ask = -1;
    LapackEigenvalues result{std::vector<double>(a.rows())};
    double room = 0;
    int iroom = 0, info = 0;
    const auto call = [&](double* work, const int* size, int* iwork, const int* isize) {
        lapack().dsygvd(&type, "N", "L", &n, a.view().data, &n, b.view().data, &n, result.values.data(), work,
                        size, iwork, isize, &info, 1, 1);
    };
    call(&room, &ask, &iroom, &ask);
    std::vector<double> work(static_cast<size_t>(room));
    std::vector<int> iwork(static_cast<size_t>(iroom));
    const int size = static_cast<int>(work.size());
    const auto start = std::chrono::steady_clock::now();
    call(work.data(), &size, iwork.data(), &iroom);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (info != 0)
        throw Error(ErrorCode::kBadInput, fmt::format("LAPACK's dsygvd finds no eigenvalues: {}", info));
    return result;
}

}  // namespace heddle::algebra
