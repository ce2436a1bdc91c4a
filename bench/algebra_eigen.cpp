// algebra.eigen: all eigenvalues of a pencil of 4096 x 4096 elements by tasks on two workers, and LAPACK's
// dsygvd without vectors on two threads of OpenBLAS in turn with it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "algebra/blas_threads.hpp"
#include "algebra/eigenvalues.hpp"
#include "algebra/lapack.hpp"
#include "figures.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using namespace heddle::algebra;
using namespace heddle::bench;

constexpr int kWorkers = 2;

/// With the workspace that LAPACK asks for, so that its reduction is the blocked one.
std::vector<double> by_lapack(DenseMatrix& a, DenseMatrix& b) {
    const BlasThreads threads(kWorkers);
    const int type = 1, n = static_cast<int>(a.rows()), ask = -1;
    std::vector<double> values(a.rows());
    double room = 0;
    int iroom = 0, info = 0;
    lapack().dsygvd(&type, "N", "L", &n, a.view().data, &n, b.view().data, &n, values.data(), &room, &ask,
                    &iroom, &ask, &info, 1, 1);
    std::vector<double> work(static_cast<size_t>(room));
    std::vector<int> iwork(static_cast<size_t>(iroom));
    const int size = static_cast<int>(work.size());
    lapack().dsygvd(&type, "N", "L", &n, a.view().data, &n, b.view().data, &n, values.data(), work.data(),
                    &size, iwork.data(), &iroom, &info, 1, 1);
    if (info != 0) throw Error(ErrorCode::kBadInput, fmt::format("LAPACK's dsygvd ends with {}", info));
    return values;
}

double apart(const std::vector<double>& x, const std::vector<double>& y) {
    double most = 0, largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        most = std::max(most, std::abs(x[i] - y[i]));
        largest = std::max(largest, std::abs(y[i]));
    }
    return most / largest;
}

void measure(Runtime& runtime, size_t n, int runs) {
    DenseMatrix a(n, n), b(n, n);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> number(-1, 1);
    for (size_t j = 0; j < n; ++j)
        for (size_t i = j; i < n; ++i) {
            a(i, j) = a(j, i) = number(random);
            b(i, j) = b(j, i) = std::exp(-static_cast<double>(i - j) / 50) + (i == j ? 1 : 0);
        }
    std::vector<double> ours, theirs;
    EigenTimes times;
    for (int run = -1; run < runs; ++run) {  // the first warms up
        Eigenvalues found;
        const double us = milliseconds([&] { found = generalized_eigenvalues(runtime, a.view(), b.view()); });
        DenseMatrix a_copy = a, b_copy = b;
        std::vector<double> expected;
        const double them = milliseconds([&] { expected = by_lapack(a_copy, b_copy); });
        if (!(apart(found.values, expected) < 1e-11))
            throw Error(ErrorCode::kBadInput, "the eigenvalues differ: the figures mean nothing");
        if (run < 0) continue;
        ours.push_back(us);
        theirs.push_back(them);
        times = found.times;
    }
    print({.name = "algebra.eigen",
           .unit = "ms",
           .values = ours,
           .peer_median = median(theirs),
           .more = {{"factor_s", times.factor_s},
                    {"standard_s", times.standard_s},
                    {"band_s", times.band_s},
                    {"chase_s", times.chase_s},
                    {"tridiagonal_s", times.tridiagonal_s}}});
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, [](bool quick) {
        Runtime runtime({.engine = "native", .cpus = {}, .workers = kWorkers});
        measure(runtime, quick ? 1024 : 4096, quick ? 3 : 5);
    });
}
