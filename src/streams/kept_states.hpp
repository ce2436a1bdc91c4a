// KeptStates: which synchrocells have fired in replicas that are not there any more.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "streams/cells.hpp"

namespace heddle::streams {

/// Of each synchrocell of a replica, in one order, whether it has fired; empty: none has.
using FiredCells = std::vector<bool>;

[[nodiscard]] inline bool all_fired(const FiredCells& cells) {
    return !cells.empty() && std::find(cells.begin(), cells.end(), false) == cells.end();
}

/// By number. What lies close together and is alike takes little. One thread at a time.
class KeptStates {
  public:
    /// False: there are too many kinds already. The number has none before.
    [[nodiscard]] bool add(int number, FiredCells cells);
    void remove(int number);
    /// Empty for those that were not added.
    [[nodiscard]] const FiredCells& of(int number) const;
    /// The last one of those behind it that are like it. It was added.
    [[nodiscard]] int last_alike(int number) const;
    [[nodiscard]] uint64_t count() const;

  private:
    static constexpr size_t kMostKinds = 16;
    std::vector<std::pair<FiredCells, ValueRanges>> kinds_;
};

}  // namespace heddle::streams
