// heddle solve: a symmetric positive definite system from Matrix Market files, solved by tile Cholesky on
// each engine that is named, and by LAPACK beside them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "algebra/blas_threads.hpp"
#include "algebra/cholesky.hpp"
#include "algebra/lapack.hpp"
#include "algebra/matrix_market.hpp"
#include "algebra/residual.hpp"
#include "command.hpp"
#include "engine_names.hpp"
#include "graph_file.hpp"
#include "heddle/dag.hpp"
#include "heddle/error.hpp"
#include "heddle/task.hpp"
#include "matrix_file.hpp"
#include "solve_covariance.hpp"
#include "task_progress.hpp"

namespace heddle::tool {
namespace {

using algebra::DenseMatrix;
using Clock = std::chrono::steady_clock;

struct SolveOptions {
    std::string matrix, rhs, out, dag;
    std::vector<std::string> engines{"native"};
    size_t tile = 0;  // 0: as suits
    int workers = 0;
    size_t covariance = 0;  // points; 0: a matrix from a file
    double accuracy = 1e-8;
    bool json = false;
    bool quiet = false;
};

struct System {
    DenseMatrix a, b;
};

struct Solution {
    std::string by;
    DenseMatrix x;
    double factor_s = 0, solve_s = 0;
    double residual = 0, difference = 0;
};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

System read_system(const SolveOptions& options) {
    System system{algebra::read_matrix_market_file(options.matrix), {}};
    algebra::require_symmetric(system.a.view(), options.matrix);
    const size_t n = system.a.rows();
    if (options.rhs.empty()) {
        system.b = DenseMatrix(n, 1);
        for (size_t j = 0; j < n; ++j)
            for (size_t i = 0; i < n; ++i) system.b(i, 0) += system.a(i, j);
        return system;
    }
    system.b = algebra::read_matrix_market_file(options.rhs);
    if (system.b.rows() != n)
        throw Error(ErrorCode::kBadInput, fmt::format("{}: it has {} rows, the matrix {} has {}", options.rhs,
                                                      system.b.rows(), options.matrix, n));
    return system;
}

/// Throws kBadInput where the matrix is not positive definite.
Solution solve_by_tasks(Runtime& runtime, const System& system, size_t tile, bool quiet) {
    Solution solution{runtime.engine(), system.b};
    DenseMatrix factor = system.a;
    TileMatrix<double> l(runtime, factor.view(), tile), x(runtime, solution.x.view(), tile);
    Sequence sequence(runtime);
    TaskProgress progress(solution.by, quiet);
    Clock::time_point start = Clock::now();
    algebra::cholesky_factor(sequence, l, &progress.counts());
    sequence.wait();
    solution.factor_s = seconds_since(start);
    start = Clock::now();
    algebra::cholesky_solve(sequence, l, x, &progress.counts());
    sequence.wait();
    solution.solve_s = seconds_since(start);
    return solution;
}

/// LAPACK on as many threads of its own as the engines had workers.
Solution solve_by_lapack(const System& system, int workers) {
    Solution solution{"LAPACK", system.b};
    DenseMatrix factor = system.a;
    const algebra::BlasThreads threads(workers);
    const int n = static_cast<int>(factor.rows()), columns = static_cast<int>(system.b.columns());
    int info = 0;
    Clock::time_point start = Clock::now();
    algebra::lapack().dpotrf("L", &n, factor.view().data, &n, &info, 1);
    if (info != 0)
        throw Error(
            ErrorCode::kBadInput,
            fmt::format("LAPACK finds that the matrix is not symmetric positive definite: pivot {}", info));
    solution.factor_s = seconds_since(start);
    start = Clock::now();
    algebra::lapack().dpotrs("L", &n, &columns, factor.view().data, &n, solution.x.view().data, &n, &info, 1);
    solution.solve_s = seconds_since(start);
    return solution;
}

double gflops(const Solution& solution) {
    const auto n = static_cast<double>(solution.x.rows());
    return n * n * n / 3e9 / solution.factor_s;
}

nlohmann::ordered_json to_json(const Solution& solution) {
    return {{"engine", solution.by},         {"factor_s", solution.factor_s},
            {"solve_s", solution.solve_s},   {"gflops", gflops(solution)},
            {"residual", solution.residual}, {"difference", solution.difference}};
}

void print_json(const SolveOptions& options, const System& system, size_t tile, int workers,
                const std::vector<Solution>& solutions) {
    nlohmann::ordered_json engines = nlohmann::ordered_json::array();
    for (const Solution& solution : solutions)
        if (&solution != &solutions.back()) engines.push_back(to_json(solution));
    nlohmann::ordered_json lapack = to_json(solutions.back());
    lapack["engine"] = algebra::lapack().file;
    const nlohmann::ordered_json all{{"matrix", options.matrix},
                                     {"n", system.a.rows()},
                                     {"right_hand_sides", system.b.columns()},
                                     {"tile", tile},
                                     {"workers", workers},
                                     {"engines", engines},
                                     {"lapack", lapack}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string duration(double seconds) {
    return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.4g} s", seconds);
}

void print_text(const SolveOptions& options, const System& system, size_t tile, int workers,
                const std::vector<Solution>& solutions) {
    fmt::print("matrix      {}: {} x {}, in tiles of {}\n", options.matrix, system.a.rows(), system.a.rows(),
               tile);
    fmt::print("right side  {}: {} {}\n", options.rhs.empty() ? "the matrix times ones" : options.rhs,
               system.b.columns(), system.b.columns() == 1 ? "column" : "columns");
    fmt::print("workers     {}\n\n", workers);
    fmt::print("{:<10} {:>10} {:>10} {:>10} {:>10} {:>11}\n", "engine", "factor", "solve", "Gflop/s",
               "residual", "difference");
    for (const Solution& solution : solutions)
        fmt::print("{:<10} {:>10} {:>10} {:>10.3g} {:>10.2g} {:>11.2g}\n", solution.by,
                   duration(solution.factor_s), duration(solution.solve_s), gflops(solution),
                   solution.residual, solution.difference);
}

void write_dag(const std::string& path, const Dag& dag) {
    if (dag.tasks() > Dag::kMostTasks)
        throw Error(
            ErrorCode::kLimit,
            fmt::format("{}: the graph has {} tasks, and a drawing has room for {}: take larger tiles "
                        "with --tile",
                        path, dag.tasks(), Dag::kMostTasks));
    write_graph_file(path, dag.dot());
}

void solve(const SolveOptions& options) {
    if (!(options.accuracy > 0 && options.accuracy < 1))
        throw UsageError(fmt::format("--accuracy: it is above 0 and below 1, not {:g}", options.accuracy));
    if (options.covariance > 0)
        return solve_covariance({options.covariance, options.accuracy, options.engines, options.tile,
                                 options.workers, options.json, options.quiet});
    if (options.matrix.empty())
        throw UsageError("A.mtx is required, or --covariance; heddle --help tells what there is");
    check_engines(options.engines);
    if (!options.dag.empty()) check_graph_file(options.dag);
    if (!options.out.empty()) NewFile::check(options.out);
    (void)algebra::lapack();
    const System system = read_system(options);
    Runtime runtime(RuntimeOptions{options.engines.front(), {}, options.workers});
    const int workers =
        options.workers > 0 ? std::min(options.workers, runtime.cpus().count()) : runtime.cpus().count();
    const size_t tile =
        options.tile > 0 ? options.tile : algebra::cholesky_tile_size(system.a.rows(), workers);
    std::vector<Solution> solutions;
    for (const std::string& engine : options.engines) {
        runtime.switch_engine(engine);
        try {
            const bool first = solutions.empty() && !options.dag.empty();
            const auto dag = first ? std::make_unique<Dag>(runtime) : nullptr;
            solutions.push_back(solve_by_tasks(runtime, system, tile, options.quiet));
            if (first) write_dag(options.dag, *dag);
        } catch (const Error& error) {
            throw Error(error.code(), fmt::format("{}: {}", options.matrix, error.what()));
        }
    }
    solutions.push_back(solve_by_lapack(system, workers));
    for (Solution& solution : solutions) {
        solution.residual = algebra::residual(system.a.view(), solution.x.view(), system.b.view());
        solution.difference = algebra::difference(solutions.front().x.view(), solution.x.view());
    }
    if (options.json)
        print_json(options, system, tile, workers, solutions);
    else
        print_text(options, system, tile, workers, solutions);
    if (!options.out.empty()) write_matrix(options.out, solutions.front().x.view());
    for (const Solution& solution : solutions)
        if (!(solution.residual <= algebra::kResidualLimit))
            throw Error(ErrorCode::kBadInput,
                        fmt::format("the residual of {} is {:.3g}, more than {}: its solution is wrong",
                                    solution.by, solution.residual, algebra::kResidualLimit));
}

}  // namespace

void add_solve(CLI::App& app) {
    const auto options = std::make_shared<SolveOptions>();
    CLI::App* const command =
        app.add_subcommand("solve", "Solve a symmetric positive definite system, by tasks on each engine");
    CLI::Option* const matrix =
        command->add_option("A.mtx", options->matrix, "the matrix, a Matrix Market file");
    command->add_option("--engine", options->engines, "engines that run the tasks, as native,openmp")
        ->allow_extra_args(false)
        ->capture_default_str();
    command->add_option("--tile", options->tile, "rows and columns of a tile; default: as suits the matrix")
        ->check(CLI::Range(1, 1 << 20));
    command->add_option("--workers", options->workers, "CPUs to use; default: all that the process may")
        ->check(CLI::Range(1, 4096));
    CLI::Option* const rhs = command->add_option(
        "--rhs", options->rhs, "right-hand sides, a Matrix Market file; default: A times ones");
    CLI::Option* const out = command->add_option("--out", options->out, "file for the solution");
    CLI::Option* const covariance =
        command
            ->add_option("--covariance", options->covariance,
                         "in place of A.mtx: the covariance of so many points, in compressed tiles")
            ->check(CLI::Range(1, 1 << 20))
            ->excludes(matrix, rhs, out);
    command->add_option("--accuracy", options->accuracy, "of compressed tiles, a part of the variance; 1e-8")
        ->needs(covariance);
    command
        ->add_option("--dag", options->dag,
                     "file for the graph of the first engine's tasks, up to 2,000: .dot, or .svg by Graphviz")
        ->excludes(covariance);
    command->add_flag("--quiet", options->quiet, "no progress on the terminal");
    command->add_flag("--json", options->json, "print JSON");
    command->callback([options] {
        options->engines = split_engines(options->engines);
        solve(*options);
    });
}

}  // namespace heddle::tool
