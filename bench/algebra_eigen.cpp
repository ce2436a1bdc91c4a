// algebra.eigen: all eigenvalues of a pencil of 4096 x 4096 elements by tasks on two workers, and LAPACK's
// dsygvd without vectors on two threads of OpenBLAS in turn with it.
#include <cmath>
#include <random>
#include <vector>

#include "algebra/eigenvalues.hpp"
#include "algebra/residual.hpp"
#include "figures.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using namespace heddle::algebra;
using namespace heddle::bench;

constexpr int kWorkers = 2;

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
        const LapackEigenvalues expected = eigenvalues_by_lapack(a, b, kWorkers);
        if (!(difference(column(expected.values), column(found.values)) < 1e-11))
            throw Error(ErrorCode::kBadInput, "the eigenvalues differ: the figures mean nothing");
        if (run < 0) continue;
        ours.push_back(us);
        theirs.push_back(expected.seconds * 1e3);
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
