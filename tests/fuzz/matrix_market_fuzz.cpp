// Whatever the bytes: refused with an Error, or a matrix of finite numbers that is written and read back.
#include "algebra/matrix_market.hpp"

#include <cmath>
#include <sstream>
#include <string>

#include "fuzz/fuzz.hpp"
#include "heddle/error.hpp"

using heddle::algebra::DenseMatrix;
using heddle::test::require;

namespace {

constexpr heddle::algebra::MarketLimits kSmall{4096};

DenseMatrix read(const std::string& text) {
    std::istringstream in(text);
    return heddle::algebra::read_matrix_market(in, "input", kSmall);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    DenseMatrix a;
    try {
        a = read(std::string(heddle::test::as_text(data, size)));
    } catch (const heddle::Error& error) {
        const bool expected =
            error.code() == heddle::ErrorCode::kBadInput || error.code() == heddle::ErrorCode::kLimit;
        require(expected, "what is refused is bad input or too large");
        return 0;
    }
    require(a.rows() > 0 && a.columns() > 0 && a.rows() * a.columns() <= kSmall.max_elements,
            "it has a size");
    std::ostringstream out;
    heddle::algebra::write_matrix_market(out, a.view());
    const DenseMatrix again = read(out.str());
    require(again.rows() == a.rows() && again.columns() == a.columns(), "its size reads back");
    for (size_t j = 0; j < a.columns(); ++j)
        for (size_t i = 0; i < a.rows(); ++i) {
            require(std::isfinite(a(i, j)), "its numbers are finite");
            require(again(i, j) == a(i, j), "its numbers read back");
        }
    return 0;
}
