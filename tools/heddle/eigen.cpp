// heddle eigen: all eigenvalues of A x = λ B x from Matrix Market files, by tasks on one engine or two, and
// by LAPACK beside them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "algebra/eigenvalues.hpp"
#include "algebra/lapack.hpp"
#include "algebra/matrix_market.hpp"
#include "algebra/residual.hpp"
#include "command.hpp"
#include "engine_names.hpp"
#include "heddle/error.hpp"
#include "matrix_file.hpp"
#include "task_progress.hpp"

namespace heddle::tool {
namespace {

using algebra::DenseMatrix;

struct EigenOptions {
    std::string a, b, out;
    std::vector<std::string> engines{"native"};
    size_t tile = 0, band = 0;  // 0: as suits
    int workers = 0;
    bool json = false;
    bool quiet = false;
};

DenseMatrix read_square(const std::string& path) {
    DenseMatrix a = algebra::read_matrix_market_file(path);
    if (a.rows() != a.columns())
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{}: the matrix is {} x {}: an eigenproblem needs square ones", path,
                                a.rows(), a.columns()));
    algebra::require_symmetric(a.view(), path);
    return a;
}

/// Of the largest eigenvalue.
double difference(const algebra::Eigenvalues& found, const algebra::LapackEigenvalues& lapack) {
    return algebra::difference(algebra::column(lapack.values), algebra::column(found.values));
}

double whole(const algebra::EigenTimes& times) {
    return times.factor_s + times.standard_s + times.band_s + times.chase_s + times.tridiagonal_s;
}

void print(const EigenOptions& options, const algebra::Eigenvalues& found,
           const algebra::LapackEigenvalues& lapack) {
    const algebra::EigenTimes& times = found.times;
    const double apart = difference(found, lapack);
    const std::string &tiles = options.engines.front(), &chase = options.engines.back();
    if (options.json) {
        const nlohmann::ordered_json all{{"a", options.a},
                                         {"b", options.b},
                                         {"n", found.values.size()},
                                         {"engines", options.engines},
                                         {"factor_s", times.factor_s},
                                         {"standard_s", times.standard_s},
                                         {"band_s", times.band_s},
                                         {"chase_s", times.chase_s},
                                         {"tridiagonal_s", times.tridiagonal_s},
                                         {"lapack_s", lapack.seconds},
                                         {"difference", apart},
                                         {"smallest", found.values.front()},
                                         {"largest", found.values.back()}};
        fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
        return;
    }
    fmt::print("pencil      {}, {}: {} eigenvalues, {:.6g} to {:.6g}\n\n", options.a, options.b,
               found.values.size(), found.values.front(), found.values.back());
    const auto stage = [](const char* name, const std::string& engine, double seconds) {
        fmt::print("{:<28} {:<14} {:>9.3f} s\n", name, engine, seconds);
    };
    stage("Cholesky of B", tiles, times.factor_s);
    stage("standard form", tiles, times.standard_s);
    stage("reduction to a band", tiles, times.band_s);
    stage("bulge chasing", chase, times.chase_s);
    stage("tridiagonal", "LAPACK", times.tridiagonal_s);
    stage("all", "", whole(times));
    stage("dsygvd", "LAPACK", lapack.seconds);
    fmt::print("difference from LAPACK, of the largest eigenvalue: {:.2g}\n", apart);
}

void eigen(const EigenOptions& options) {
    constexpr double kLimit = 1e-9;
    if (options.engines.size() > 2)
        throw UsageError(
            "--engine takes one engine, or two: for the stages with tiles, and for bulge chasing");
    check_engines(options.engines);
    if (!options.out.empty()) NewFile::check(options.out);
    (void)algebra::lapack();
    const DenseMatrix a = read_square(options.a), b = read_square(options.b);
    if (a.rows() != b.rows())
        throw Error(ErrorCode::kBadInput, fmt::format("{}: it has {} rows, the matrix {} has {}", options.b,
                                                      b.rows(), options.a, a.rows()));
    Runtime runtime(RuntimeOptions{options.engines.front(), {}, options.workers});
    const int workers =
        options.workers > 0 ? std::min(options.workers, runtime.cpus().count()) : runtime.cpus().count();
    algebra::EigenOptions how;
    how.chase_engine = options.engines.back();
    how.tile = options.tile;
    how.band = options.band;
    algebra::Eigenvalues found;
    try {
        TaskProgress progress("eigen", options.quiet);
        how.progress = &progress.counts();
        found = algebra::generalized_eigenvalues(runtime, a.view(), b.view(), how);
    } catch (const Error& error) {
        if (error.code() == ErrorCode::kInvalidArgument) throw UsageError(error.what());
        throw Error(error.code(), fmt::format("{}: {}", options.b, error.what()));
    }
    const algebra::LapackEigenvalues lapack = algebra::eigenvalues_by_lapack(a, b, workers);
    print(options, found, lapack);
    if (!options.out.empty()) write_matrix(options.out, algebra::column(found.values));
    if (const double apart = difference(found, lapack); !(apart <= kLimit))
        throw Error(
            ErrorCode::kBadInput,
            fmt::format("the eigenvalues differ from LAPACK's by {:.3g}: B is too badly conditioned", apart));
}

}  // namespace

void add_eigen(CLI::App& app) {
    const auto options = std::make_shared<EigenOptions>();
    CLI::App* const command =
        app.add_subcommand("eigen", "Eigenvalues of A x = lambda B x, by tasks, stage by stage");
    command->add_option("A.mtx", options->a, "a symmetric matrix, a Matrix Market file")->required();
    command->add_option("B.mtx", options->b, "a symmetric positive definite one")->required();
    command
        ->add_option("--engine", options->engines,
                     "the engine, or two: for the stages with tiles, and for bulge chasing")
        ->allow_extra_args(false)
        ->capture_default_str();
    command->add_option("--tile", options->tile, "rows and columns of a tile, a multiple of the band")
        ->check(CLI::Range(1, 1 << 20));
    command->add_option("--band", options->band, "diagonals of the band in between")
        ->check(CLI::Range(1, 4096));
    command->add_option("--workers", options->workers, "CPUs to use; default: all that the process may")
        ->check(CLI::Range(1, 4096));
    command->add_option("--out", options->out, "file for the eigenvalues");
    command->add_flag("--quiet", options->quiet, "no progress on the terminal");
    command->add_flag("--json", options->json, "print JSON");
    command->callback([options] {
        options->engines = split_engines(options->engines);
        eigen(*options);
    });
}

}  // namespace heddle::tool
