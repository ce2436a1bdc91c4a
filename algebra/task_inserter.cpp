#include "algebra/task_inserter.hpp"

#include <fmt/format.h>

#include "algebra/tile_kernels.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {

void factor_diagonal(MatrixView<double> a, size_t first) {
    const size_t failed = factor_tile(a);
    if (failed > 0)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("the matrix is not symmetric positive definite: pivot {} of its Cholesky "
                                "factorisation is not positive",
                                first + failed));
}

}  // namespace heddle::algebra
