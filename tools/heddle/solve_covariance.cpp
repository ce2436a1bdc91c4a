#include "solve_covariance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "algebra/lapack.hpp"
#include "algebra/residual.hpp"
#include "algebra/tlr_cholesky.hpp"
#include "engine_names.hpp"
#include "heddle/error.hpp"
#include "task_progress.hpp"

namespace heddle::tool {
namespace {

using algebra::DenseMatrix;

struct Factored {
    std::string by;
    DenseMatrix x;  // A⁻¹ times ones
    double compress_s = 0, factor_s = 0, solve_s = 0;
    double backward_error = 0, difference = 0;
    algebra::RankStatistics ranks;
};

template <class Work>
double seconds(Work work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Factored factorise(Runtime& runtime, const algebra::ElementSource& source, size_t n, size_t tile,
                   double accuracy, bool quiet) {
    Factored result;
    result.by = runtime.engine();
    result.x = DenseMatrix(n, 1);
    for (size_t i = 0; i < n; ++i) result.x(i, 0) = 1;
    algebra::TlrMatrix a(runtime, n, tile);
    TileMatrix<double> x(runtime, result.x.view(), tile);
    Sequence sequence(runtime);
    {
        TaskProgress progress(result.by, quiet);
        double tolerance = 0;
        result.compress_s = seconds([&] {
            tolerance = algebra::tlr_compress(sequence, source, accuracy, a, &progress.counts());
            sequence.wait();
        });
        result.factor_s = seconds([&] {
            algebra::tlr_factor(sequence, a, tolerance, &progress.counts());
            sequence.wait();
        });
        result.solve_s = seconds([&] {
            algebra::tlr_solve(sequence, a, x, &progress.counts());
            sequence.wait();
        });
    }
    result.ranks = a.ranks();
    result.backward_error = algebra::tlr_backward_error(source, a);
    return result;
}

nlohmann::ordered_json to_json(const Factored& result) {
    return {{"engine", result.by},
            {"compress_s", result.compress_s},
            {"factor_s", result.factor_s},
            {"solve_s", result.solve_s},
            {"backward_error", result.backward_error},
            {"difference", result.difference},
            {"average_rank", result.ranks.average},
            {"largest_rank", result.ranks.largest},
            {"bytes", result.ranks.bytes}};
}

void print_json(const CovarianceOptions& options, size_t tile, const std::vector<Factored>& results) {
    nlohmann::ordered_json engines = nlohmann::ordered_json::array();
    for (const Factored& result : results) engines.push_back(to_json(result));
    const nlohmann::ordered_json all{
        {"n", options.points}, {"accuracy", options.accuracy}, {"tile", tile}, {"engines", engines}};
    fmt::print("{}\n", all.dump(2));
}

void print_text(const CovarianceOptions& options, size_t tile, const std::vector<Factored>& results) {
    fmt::print("matrix    covariance of {} points, in tiles of {}, accuracy {:g}\n\n", options.points, tile,
               options.accuracy);
    fmt::print("{:<10} {:>10} {:>10} {:>10} {:>13} {:>10} {:>10} {:>9}\n", "engine", "compress", "factor",
               "solve", "rank, largest", "memory", "error", "difference");
    for (const Factored& result : results)
        fmt::print("{:<10} {:>8.3f} s {:>8.3f} s {:>8.3f} s {:>5.1f}, {:>6} {:>7.1f} MB {:>10.2g} {:>9.2g}\n",
                   result.by, result.compress_s, result.factor_s, result.solve_s, result.ranks.average,
                   result.ranks.largest, static_cast<double>(result.ranks.bytes) / 1e6, result.backward_error,
                   result.difference);
}

}  // namespace

void solve_covariance(const CovarianceOptions& options) {
    check_engines(options.engines);
    (void)algebra::lapack();
    const algebra::ExponentialCovariance covariance(options.points);
    const algebra::ElementSource source = [&](size_t i, size_t j, MatrixView<double> part) {
        covariance.fill(i, j, part);
    };
    const size_t tile = options.tile > 0 ? options.tile : algebra::tlr_tile_size(options.points);
    Runtime runtime(RuntimeOptions{options.engines.front(), {}, options.workers});
    std::vector<Factored> results;
    for (const std::string& engine : options.engines) {
        runtime.switch_engine(engine);
        results.push_back(factorise(runtime, source, options.points, tile, options.accuracy, options.quiet));
        results.back().difference = algebra::difference(results.front().x.view(), results.back().x.view());
    }
    if (options.json)
        print_json(options, tile, results);
    else
        print_text(options, tile, results);
    for (const Factored& result : results)
        if (!(result.backward_error <= options.accuracy))
            throw Error(ErrorCode::kBadInput,
                        fmt::format("the backward error on {} is {:.3g}, more than the accuracy {:g}",
                                    result.by, result.backward_error, options.accuracy));
}

}  // namespace heddle::tool
