// algebra.cholesky, algebra.gemm: tile algorithms on two workers, and OpenBLAS with two threads of its own in
// turn with them, on the same matrices of 4096 x 4096 elements. Ours lie in tiles, each contiguous; what it
// takes to bring them there is not measured.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <vector>

#include "algebra/blas_threads.hpp"
#include "algebra/cholesky.hpp"
#include "algebra/dense_matrix.hpp"
#include "algebra/lapack.hpp"
#include "algebra/multiply.hpp"
#include "algebra/residual.hpp"
#include "figures.hpp"
#include "heddle/error.hpp"

namespace {

using heddle::algebra::BlasThreads;
using heddle::algebra::DenseMatrix;
using heddle::algebra::lapack;
using namespace heddle::bench;

constexpr int kWorkers = 2;

/// A covariance matrix: symmetric positive definite.
DenseMatrix covariance(size_t n) {
    DenseMatrix a(n, n);
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < n; ++i)
            a(i, j) = std::exp(-std::abs(static_cast<double>(i) - static_cast<double>(j)) / 50);
    return a;
}

/// Copies between a matrix and its tiles.
template <class Copy>
void with_tiles(heddle::TileMatrix<double>& tiles, DenseMatrix& a, Copy copy) {
    const size_t size = tiles.tile_size();
    for (size_t tj = 0; tj < tiles.tile_columns(); ++tj)
        for (size_t ti = 0; ti < tiles.tile_rows(); ++ti) {
            const heddle::MatrixView<double> tile = tiles.tile(ti, tj).get();
            for (size_t j = 0; j < tile.columns; ++j)
                for (size_t i = 0; i < tile.rows; ++i) copy(tile(i, j), a(ti * size + i, tj * size + j));
        }
}

void into_tiles(heddle::TileMatrix<double>& tiles, DenseMatrix& a) {
    with_tiles(tiles, a, [](double& to, double from) { to = from; });
}

void out_of_tiles(heddle::TileMatrix<double>& tiles, DenseMatrix& a) {
    with_tiles(tiles, a, [](double from, double& to) { to = from; });
}

/// One problem, solved by tasks and by OpenBLAS.
struct Problem {
    const char* name;
    std::function<void()> prepare;
    std::function<void()> ours, theirs;
    std::function<void()> collect;  ///< our tiles into the result
    DenseMatrix& result;
};

/// Prints the figure; throws where the results are not the same.
void measure(const Problem& problem, int runs) {
    std::vector<double> ours, theirs;
    for (int run = -1; run < runs; ++run) {  // the first warms up
        problem.prepare();
        const double us = milliseconds(problem.ours);
        if (run < 0) problem.collect();
        const DenseMatrix of_tasks = run < 0 ? problem.result : DenseMatrix();
        problem.prepare();
        const double them = milliseconds(problem.theirs);
        if (run < 0) {
            if (!(heddle::algebra::difference(of_tasks.view(), problem.result.view()) < 1e-9))
                throw heddle::Error(
                    heddle::ErrorCode::kBadInput,
                    fmt::format("{}: the results differ: the figures mean nothing", problem.name));
            continue;
        }
        ours.push_back(us);
        theirs.push_back(them);
    }
    print({.name = fmt::format("algebra.{}", problem.name),
           .unit = "ms",
           .values = ours,
           .peer_median = median(theirs)});
}

void measure_cholesky(heddle::Runtime& runtime, size_t n, int runs) {
    DenseMatrix a = covariance(n), l(n, n);
    heddle::TileMatrix<double> tiles(runtime, n, n, heddle::algebra::cholesky_tile_size(n, kWorkers));
    const int size = static_cast<int>(n);
    measure({"cholesky",
             [&] {
                 l = a;
                 into_tiles(tiles, a);
             },
             [&] {
                 heddle::Sequence sequence(runtime);
                 heddle::algebra::cholesky_factor(sequence, tiles);
                 sequence.wait();
             },
             [&] {
                 const BlasThreads threads(kWorkers);
                 int info = 0;
                 lapack().dpotrf("L", &size, l.view().data, &size, &info, 1);
             },
             [&] { out_of_tiles(tiles, l); }, l},
            runs);
}

void measure_gemm(heddle::Runtime& runtime, size_t n, int runs) {
    DenseMatrix a = covariance(n), b = a, c(n, n);
    const size_t tile = heddle::algebra::multiply_tile_size(n, kWorkers);
    heddle::TileMatrix<double> ta(runtime, n, n, tile), tb(runtime, n, n, tile), tc(runtime, n, n, tile);
    into_tiles(ta, a);
    into_tiles(tb, b);
    const int size = static_cast<int>(n);
    const double one = 1, zero = 0;
    measure({"gemm", [] {},
             [&] {
                 heddle::Sequence sequence(runtime);
                 heddle::algebra::multiply(sequence, 1, ta, tb, 0, tc);
                 sequence.wait();
             },
             [&] {
                 const BlasThreads threads(kWorkers);
                 lapack().dgemm("N", "N", &size, &size, &size, &one, a.view().data, &size, b.view().data,
                                &size, &zero, c.view().data, &size, 1, 1);
             },
             [&] { out_of_tiles(tc, c); }, c},
            runs);
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, [](bool quick) {
        const size_t n = quick ? 1024 : 4096;
        heddle::Runtime runtime({.engine = "native", .cpus = {}, .workers = kWorkers});
        measure_cholesky(runtime, n, quick ? 3 : 15);
        measure_gemm(runtime, n, quick ? 3 : 9);
    });
}
