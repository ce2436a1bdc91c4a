// A result that is a matrix, in a Matrix Market file.
#pragma once

#include <span>
#include <sstream>

#include "algebra/matrix_market.hpp"
#include "base/new_file.hpp"

namespace heddle::tool {

/// The file was made before the work, so that whether it can be written was told then.
inline void write_matrix(NewFile& file, MatrixView<const double> matrix) {
    std::ostringstream text;
    algebra::write_matrix_market(text, matrix);
    file.write(std::as_bytes(std::span(text.view())));
    file.keep();
}

}  // namespace heddle::tool
