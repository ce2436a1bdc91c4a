// Eigenvalues of A x = λ B x, A symmetric and B symmetric positive definite, stage by stage, each on the
// engine that suits it.
//
// The call waits for each stage, and switches the runtime's engine in between: no other thread should insert
// into that runtime meanwhile unless it may wait, too. Any thread may call, outside tasks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "algebra/dense_matrix.hpp"
#include "algebra/progress.hpp"
#include "heddle/task.hpp"

namespace heddle::algebra {

struct EigenOptions {
    /// For the stages with whole tiles, and for bulge chasing. Empty: the engine that is there.
    std::string tile_engine, chase_engine;
    size_t tile = 0;  ///< 0: as suits the size; otherwise a multiple of the band, or n and more
    size_t band = 0;  ///< 0: as suits the size
    Progress* progress = nullptr;
};

struct EigenTimes {
    double factor_s = 0, standard_s = 0, band_s = 0, chase_s = 0, tridiagonal_s = 0;
};

struct Eigenvalues {
    std::vector<double> values;  ///< in rising order
    EigenTimes times;
};

/// The lower triangles of both are read. Throws kInvalidArgument for matrices that are not square and of one
/// size, or options that do not fit; kBadInput where B is not positive definite (the message names the pivot)
/// or a number of A is none; kUnavailable as lapack() and Runtime::switch_engine().
[[nodiscard]] Eigenvalues generalized_eigenvalues(Runtime& runtime, MatrixView<const double> a,
                                                  MatrixView<const double> b,
                                                  const EigenOptions& options = {});

struct LapackEigenvalues {
    std::vector<double> values;  ///< in rising order
    double seconds = 0;
};

/// What LAPACK's dsygvd finds on so many threads, to compare with: with the workspace that it asks for, so
/// that its reduction is the blocked one. Throws kBadInput where it finds none, and as lapack().
[[nodiscard]] LapackEigenvalues eigenvalues_by_lapack(DenseMatrix a, DenseMatrix b, int workers);

}  // namespace heddle::algebra
