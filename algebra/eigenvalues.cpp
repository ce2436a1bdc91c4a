#include "algebra/eigenvalues.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "algebra/cholesky.hpp"
#include "algebra/eigen_stages.hpp"
#include "algebra/lapack.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

using Clock = std::chrono::steady_clock;

/// The lower triangle's tiles.
void copy_into(TileMatrix<double>& tiles, MatrixView<const double> a) {
    const size_t tile = tiles.tile_size();
    for (size_t tj = 0; tj < tiles.tile_columns(); ++tj)
        for (size_t ti = tj; ti < tiles.tile_rows(); ++ti) {
            const MatrixView<double> to = tiles.tile(ti, tj).get();
            for (size_t j = 0; j < to.columns; ++j)
                std::copy_n(&a(ti * tile, tj * tile + j), to.rows, &to(0, j));
        }
}

/// The seconds that `stage` took.
template <class Stage>
double timed(Stage stage) {
    const Clock::time_point start = Clock::now();
    stage();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

void use_engine(Runtime& runtime, const std::string& engine) {
    if (!engine.empty()) runtime.switch_engine(engine);
}

void require_shapes(MatrixView<const double> a, MatrixView<const double> b) {
    if (a.rows != a.columns || b.rows != b.columns || a.rows != b.rows || a.rows == 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("A is {} x {}, B is {} x {}: an eigenproblem needs square matrices of one "
                                "size",
                                a.rows, a.columns, b.rows, b.columns));
}

void require_numbers(MatrixView<const double> a) {
    for (size_t j = 0; j < a.columns; ++j)
        for (size_t i = j; i < a.rows; ++i)
            if (!std::isfinite(a(i, j)))
                throw Error(ErrorCode::kBadInput,
                            fmt::format("element ({}, {}) of A is not a finite number", i + 1, j + 1));
}

size_t band_width(size_t n, const EigenOptions& options) {
    constexpr size_t kUsual = 64;
    const size_t fits = options.tile > 0 ? std::gcd(options.tile, kUsual) : kUsual;
    return std::min(options.band > 0 ? options.band : fits, n);
}

/// As many whole panels as an eighth of the matrix holds, at most eight.
size_t tile_size(size_t n, size_t width, const EigenOptions& options) {
    return options.tile > 0 ? options.tile : std::clamp(n / 8 / width, size_t{1}, size_t{8}) * width;
}

std::vector<double> tridiagonal_eigenvalues(const SymmetricBand& band) {
    const size_t n = band.size();
    std::vector<double> values(n), beside(n);
    for (size_t i = 0; i < n; ++i) values[i] = band(i, i);
    for (size_t i = 0; i + 1 < n; ++i) beside[i] = band(i + 1, i);
    const int size = static_cast<int>(n);
    int info = 0;
    lapack().dsterf(&size, values.data(), beside.data(), &info);
    if (info != 0)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} eigenvalues were not found: LAPACK's dsterf did not converge", info));
    return values;
}

}  // namespace

Eigenvalues generalized_eigenvalues(Runtime& runtime, MatrixView<const double> a, MatrixView<const double> b,
                                    const EigenOptions& options) {
    require_shapes(a, b);
    require_numbers(a);
    const size_t n = a.rows, width = band_width(n, options), tile = tile_size(n, width, options);
    use_engine(runtime, options.tile_engine);
    TileMatrix<double> c(runtime, n, n, tile), l(runtime, n, n, tile);
    copy_into(c, a);
    copy_into(l, b);
    SymmetricBand band(n, width);
    Eigenvalues result;
    Sequence sequence(runtime);
    result.times.factor_s = timed([&] {
        cholesky_factor(sequence, l, options.progress);
        sequence.wait();
    });
    result.times.standard_s = timed([&] {
        to_standard_form(sequence, l, c, options.progress);
        sequence.wait();
    });
    result.times.band_s = timed([&] { reduce_to_band(runtime, c, band, options.progress); });
    use_engine(runtime, options.chase_engine);
    result.times.chase_s = timed([&] { chase_bulges(runtime, band, options.progress); });
    result.times.tridiagonal_s = timed([&] { result.values = tridiagonal_eigenvalues(band); });
    return result;
}

}  // namespace heddle::algebra
