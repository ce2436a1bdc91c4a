// A block of the square with a border of one cell around it, and one step of Jacobi's iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mesh.hpp"

namespace heddle::example {

class Cells {
  public:
    explicit Cells(const Block& block) : columns_(block.columns + 2), values_((block.rows + 2) * columns_) {}
    double& at(size_t row, size_t column) { return values_[row * columns_ + column]; }
    [[nodiscard]] double* row(size_t row) { return &values_[row * columns_]; }
    [[nodiscard]] const double* row(size_t row) const { return &values_[row * columns_]; }

  private:
    size_t columns_;
    std::vector<double> values_;
};

/// One side of the square is hot.
inline void heat(const Block& block, Cells& cells) {
    if (block.first_row == 0)
        for (size_t column = 0; column < block.columns + 2; ++column) cells.at(0, column) = 1;
}

/// Returns by how much a cell has changed at most. Compiled once for all that use it: what two programs add
/// to it can be compared.
[[nodiscard]] double step(const Block& block, const Cells& now, Cells& next);

/// Of the square's bytes, row after row: FNV-1a.
class Fingerprint {
  public:
    void add(const void* bytes, size_t size) {
        for (size_t i = 0; i < size; ++i)
            hash_ = (hash_ ^ static_cast<const uint8_t*>(bytes)[i]) * 0x100000001B3u;
    }
    [[nodiscard]] uint64_t value() const { return hash_; }

  private:
    uint64_t hash_ = 0xCBF29CE484222325u;
};

}  // namespace heddle::example
