// Matrix Market files, read into dense matrices and written from them.
//
// Read are `array` and `coordinate` files of `real` or `integer` numbers, `general` or `symmetric`; of a
// symmetric one both triangles are filled. Comments and empty lines are passed over everywhere, lines may end
// in CR LF, and letters of the header may be large or small. What is refused is refused with
// "FILE:LINE: what": complex numbers, patterns without numbers, numbers that are not finite, entries outside,
// given twice or above the diagonal of a symmetric matrix, too few and too many entries.
//
// No state; any thread. Source: Boisvert, Pozo, Remington, "The Matrix Market exchange formats" (NIST, 1996).
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include "algebra/dense_matrix.hpp"

namespace heddle::algebra {

struct MarketLimits {
    /// Of the dense matrix, zeros included: by default 8 GiB of it, 32,768 x 32,768.
    size_t max_elements = size_t{1} << 30;
};

/// `name` stands for the file in messages. Throws kBadInput, and kLimit for a matrix that is too large.
[[nodiscard]] DenseMatrix read_matrix_market(std::istream& in, const std::string& name,
                                             const MarketLimits& limits = {});
/// The same from a file. Throws kSystem besides, where it cannot be read.
[[nodiscard]] DenseMatrix read_matrix_market_file(const std::string& path, const MarketLimits& limits = {});

/// As `array real general`, each number with the fewest digits that read back as the same double. Failure is
/// the stream's to tell.
void write_matrix_market(std::ostream& out, MatrixView<const double> a);

}  // namespace heddle::algebra
