// A result that is a matrix, in a Matrix Market file.
#pragma once

#include <span>
#include <sstream>
#include <string>

#include "algebra/matrix_market.hpp"
#include "base/new_file.hpp"

namespace heddle::tool {

/// Whole or not at all, as NewFile.
inline void write_matrix(const std::string& path, MatrixView<const double> matrix) {
    std::ostringstream text;
    algebra::write_matrix_market(text, matrix);
    NewFile file(path);
    file.write(std::as_bytes(std::span(text.view())));
    file.keep();
}

}  // namespace heddle::tool
