// algebra.tlr: tile-low-rank Cholesky of an exponential covariance of 16,384 points at accuracy 1e-8, and our
// dense tile Cholesky of the same matrix in turn with it, on two workers. algebra.tlr_whole is the same with
// compression counted in, while the dense matrix is there already.
#include <fmt/format.h>

#include <vector>

#include "algebra/cholesky.hpp"
#include "algebra/tlr_cholesky.hpp"
#include "figures.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using namespace heddle::algebra;
using namespace heddle::bench;

constexpr int kWorkers = 2;
constexpr double kAccuracy = 1e-8;

void generate(Sequence& sequence, const ElementSource& source, TileMatrix<double>& a) {
    for (size_t j = 0; j < a.tile_columns(); ++j)
        for (size_t i = j; i < a.tile_rows(); ++i)
            sequence.insert([&source, first_row = i * a.tile_size(), first_column = j * a.tile_size()](
                                MatrixView<double> part) { source(first_row, first_column, part); },
                            out(a.tile(i, j)));
    sequence.wait();
}

void measure(Runtime& runtime, size_t n, int runs) {
    const ExponentialCovariance covariance(n);
    const ElementSource source = [&](size_t i, size_t j, MatrixView<double> part) {
        covariance.fill(i, j, part);
    };
    TileMatrix<double> dense(runtime, n, n, cholesky_tile_size(n, kWorkers));
    Sequence sequence(runtime);
    std::vector<double> factor, whole, dense_factor;
    for (int run = -1; run < runs; ++run) {  // the first warms up
        TlrMatrix a(runtime, n, tlr_tile_size(n));
        double tolerance = 0;
        const double compress_ms = milliseconds([&] {
            tolerance = tlr_compress(sequence, source, kAccuracy, a);
            sequence.wait();
        });
        const double factor_ms = milliseconds([&] {
            tlr_factor(sequence, a, tolerance);
            sequence.wait();
        });
        if (run < 0) {
            const double error = tlr_backward_error(source, a);
            const RankStatistics ranks = a.ranks();
            print({.name = "algebra.tlr_backward_error",
                   .unit = "of A",
                   .values = {error},
                   .more = {{"average_rank", ranks.average},
                            {"largest_rank", static_cast<double>(ranks.largest)},
                            {"bytes", static_cast<double>(ranks.bytes)}}});
            if (!(error <= kAccuracy))
                throw Error(ErrorCode::kBadInput,
                            fmt::format("the backward error is {:.3g}: the figures mean nothing", error));
            continue;
        }
        generate(sequence, source, dense);
        dense_factor.push_back(milliseconds([&] {
            cholesky_factor(sequence, dense);
            sequence.wait();
        }));
        factor.push_back(factor_ms);
        whole.push_back(compress_ms + factor_ms);
    }
    const double dense_ms = median(dense_factor);
    print({.name = "algebra.tlr", .unit = "ms", .values = factor, .peer_median = dense_ms});
    print({.name = "algebra.tlr_whole", .unit = "ms", .values = whole, .peer_median = dense_ms});
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, [](bool quick) {
        Runtime runtime({.engine = "native", .cpus = {}, .workers = kWorkers});
        measure(runtime, quick ? 4096 : 16384, quick ? 1 : 3);
    });
}
