// A block of the square, or of a picture, with a border of one cell around it, and one step of Jacobi's
// iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mesh.hpp"

namespace heddle::example {

class Cells {
  public:
    explicit Cells(const Block& block) : block_(block), values_((block.rows + 2) * width()) {}
    double& at(size_t row, size_t column) { return values_[row * width() + column]; }
    [[nodiscard]] double* row(size_t row) { return &values_[row * width()]; }
    [[nodiscard]] const double* row(size_t row) const { return &values_[row * width()]; }

    /// Cells along a side of the block.
    [[nodiscard]] size_t length(int side) const {
        return side == Mesh::kUp || side == Mesh::kDown ? block_.columns : block_.rows;
    }
    /// The ith cell of a side: 0 the one of the neighbour, 1 one's own.
    double& border(int side, size_t i, size_t inside) {
        switch (side) {
            case Mesh::kUp:
                return at(inside, i + 1);
            case Mesh::kDown:
                return at(block_.rows + 1 - inside, i + 1);
            case Mesh::kLeft:
                return at(i + 1, inside);
            default:
                return at(i + 1, block_.columns + 1 - inside);
        }
    }

  private:
    [[nodiscard]] size_t width() const { return block_.columns + 2; }
    Block block_;
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

/// The same, but cells that are `kept` keep their values: a flag a cell, row after row, without the border.
[[nodiscard]] double step(const Block& block, const Cells& now, Cells& next, const std::vector<bool>& kept);

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
