#include "algebra/tlr_matrix.hpp"

#include <algorithm>

#include "heddle/error.hpp"

namespace heddle::algebra {

TlrMatrix::TlrMatrix(Runtime& runtime, size_t n, size_t tile) : n_(n), tile_(tile) {
    if (n == 0 || tile == 0)
        throw Error(ErrorCode::kInvalidArgument, "a matrix in tiles has elements, and so have its tiles");
    const size_t count = (n + tile - 1) / tile;
    diagonal_.reserve(count);
    low_rank_.reserve(count * (count - 1) / 2);
    below_.reserve(count * (count - 1) / 2);
    for (size_t i = 0; i < count; ++i) {
        const size_t rows = std::min(tile, n - i * tile);
        diagonal_.emplace_back(runtime, rows, rows);
        for (size_t j = 0; j < i; ++j) {
            low_rank_.push_back(std::make_unique<LowRankTile>());
            low_rank_.back()->factors =
                std::make_shared<LowRank>(LowRank{DenseMatrix(rows, 0), DenseMatrix(tile, 0)});
            below_.emplace_back(runtime, low_rank_.back().get());
        }
    }
}

RankStatistics TlrMatrix::ranks() const {
    RankStatistics statistics;
    statistics.smallest = low_rank_.empty() ? 0 : n_;
    size_t sum = 0;
    for (const Below& handle : below_) {
        const LowRank& tile = *handle.get()->factors;
        statistics.smallest = std::min(statistics.smallest, tile.rank());
        statistics.largest = std::max(statistics.largest, tile.rank());
        sum += tile.rank();
        statistics.bytes += tile.rank() * (tile.u.rows() + tile.v.rows()) * sizeof(double);
    }
    if (!below_.empty()) statistics.average = static_cast<double>(sum) / static_cast<double>(below_.size());
    for (size_t k = 0; k < tiles(); ++k) statistics.bytes += rows_of(k) * rows_of(k) * sizeof(double);
    return statistics;
}

}  // namespace heddle::algebra
