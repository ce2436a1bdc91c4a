// The ways in which MPI carries the bytes of a segment: through windows in shared memory, where all ranks are
// on one machine; from and to windows by MPI_Get and MPI_Put; and in messages, where windows do not work.
#pragma once

#include <memory>
#include <string>

#include "memory/segment.hpp"

namespace heddle::memory {

/// MPI counts in int.
constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;

enum class Window {
    kShared,    ///< MPI_Win_allocate_shared: bytes are copied by the processor
    kTransfers  ///< MPI_Win_allocate: bytes are moved by MPI_Get and MPI_Put
};

/// Called by all ranks; null for all, and why, where a window could not be had on one.
[[nodiscard]] std::unique_ptr<Segment> make_window_segment(Window kind, Rank self, uint64_t size,
                                                           std::string& problem);
/// Called by all ranks: whether what one rank puts into a window the others find there. "": yes.
[[nodiscard]] std::string test_windows(Window kind);

/// Called by all ranks. A thread of each rank answers the others. Throws kSystem, on all.
[[nodiscard]] std::unique_ptr<Segment> make_message_segment(Rank self, uint64_t size);

}  // namespace heddle::memory
