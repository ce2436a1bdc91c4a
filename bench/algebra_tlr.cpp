// algebra.tlr: tile-low-rank Cholesky of an exponential covariance of 16,384 points at accuracy 1e-8, and our
// dense tile Cholesky of the same matrix in turn with it, on two workers. algebra.tlr_whole is the same with
// compression counted in, while the dense matrix is there already.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "algebra/cholesky.hpp"
#include "algebra/tlr_cholesky.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using namespace heddle::algebra;

constexpr int kWorkers = 2;
constexpr double kAccuracy = 1e-8;

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double mad(std::vector<double> values) {
    const double middle = median(values);
    for (double& value : values) value = std::abs(value - middle);
    return median(values);
}

template <class Work>
double milliseconds(Work work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void generate(Sequence& sequence, const ElementSource& source, TileMatrix<double>& a) {
    for (size_t j = 0; j < a.tile_columns(); ++j)
        for (size_t i = j; i < a.tile_rows(); ++i)
            sequence.insert([&source, first_row = i * a.tile_size(), first_column = j * a.tile_size()](
                                MatrixView<double> part) { source(first_row, first_column, part); },
                            out(a.tile(i, j)));
    sequence.wait();
}

void print(const char* name, const std::vector<double>& ours, double dense) {
    fmt::print(
        "{{\"name\":\"algebra.{}\",\"n\":{},\"median\":{:.1f},\"mad\":{:.1f},\"unit\":\"ms\","
        "\"peer_median\":{:.1f}}}\n",
        name, ours.size(), median(ours), mad(ours), dense);
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
            fmt::print(
                "{{\"name\":\"algebra.tlr_backward_error\",\"n\":1,\"median\":{:.3g},\"mad\":0,"
                "\"unit\":\"of A\",\"average_rank\":{:.1f},\"largest_rank\":{},\"bytes\":{}}}\n",
                error, ranks.average, ranks.largest, ranks.bytes);
            if (!(error <= kAccuracy))
                throw Error(ErrorCode::kBadInput,
                            fmt::format("the backward error is {:.3g}: the figures mean nothing", error));
            continue;
        }
        generate(sequence, source, dense);
        const double dense_ms = milliseconds([&] {
            cholesky_factor(sequence, dense);
            sequence.wait();
        });
        factor.push_back(factor_ms);
        whole.push_back(compress_ms + factor_ms);
        dense_factor.push_back(dense_ms);
    }
    print("tlr", factor, median(dense_factor));
    print("tlr_whole", whole, median(dense_factor));
}

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
    if (argc > 2 || (argc == 2 && !quick)) {
        fmt::print(stderr, "usage: algebra_tlr [--quick]\n");
        return 2;
    }
    try {
        RuntimeOptions options;
        options.workers = kWorkers;
        Runtime runtime(options);
        measure(runtime, quick ? 4096 : 16384, quick ? 1 : 3);
    } catch (const Error& error) {
        fmt::print(stderr, "algebra_tlr: {}\n", error.what());
        return 1;
    }
    return 0;
}
