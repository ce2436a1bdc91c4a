// How a rectangle of cells is cut into blocks, one a rank: P x Q blocks, with P and Q as near to each other
// as they can be, of which some have a row or a column more than others.
#pragma once

#include <cstddef>

#include "heddle/memory.hpp"

namespace heddle::example {

struct Block {
    size_t first_row, rows, first_column, columns;
};

class Mesh {
  public:
    Mesh(size_t n, memory::Rank ranks) : Mesh(n, n, ranks) {}
    Mesh(size_t rows, size_t columns, memory::Rank ranks) : rows_(rows), columns_(columns), ranks_(ranks) {
        for (memory::Rank down = 1; down * down <= ranks; ++down)
            if (ranks % down == 0) down_ = down;
        across_ = ranks / down_;
    }

    [[nodiscard]] Block block(memory::Rank rank) const {
        const auto [first_row, rows] = part(rows_, down_, rank / across_);
        const auto [first_column, columns] = part(columns_, across_, rank % across_);
        return {first_row, rows, first_column, columns};
    }
    /// Each block has a cell.
    [[nodiscard]] bool fits() const { return down_ <= rows_ && across_ <= columns_; }
    /// The most rows and columns that a block has.
    [[nodiscard]] size_t most_rows() const { return (rows_ + down_ - 1) / down_; }
    [[nodiscard]] size_t most_columns() const { return (columns_ + across_ - 1) / across_; }

    static constexpr int kUp = 0, kDown = 1, kLeft = 2, kRight = 3;
    /// The rank on that side, or -1 at the edge of the square.
    [[nodiscard]] int neighbour(memory::Rank rank, int side) const {
        const memory::Rank row = rank / across_, column = rank % across_;
        switch (side) {
            case kUp:
                return row > 0 ? static_cast<int>(rank - across_) : -1;
            case kDown:
                return row + 1 < down_ ? static_cast<int>(rank + across_) : -1;
            case kLeft:
                return column > 0 ? static_cast<int>(rank - 1) : -1;
            default:
                return column + 1 < across_ ? static_cast<int>(rank + 1) : -1;
        }
    }

  private:
    struct Part {
        size_t first, size;
    };
    [[nodiscard]] static Part part(size_t cells, memory::Rank parts, memory::Rank which) {
        const size_t size = cells / parts, larger = cells % parts;
        return {which * size + (which < larger ? which : larger), size + (which < larger ? 1 : 0)};
    }

    size_t rows_, columns_;
    memory::Rank ranks_, down_ = 1, across_ = 1;
};

}  // namespace heddle::example
