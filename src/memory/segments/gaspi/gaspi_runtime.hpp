// GASPI in this process: started once, with all ranks of the servers, and ended with the process; and calls
// of it that throw.
//
// Any thread, but for start(), which all ranks call with the first segment.
#pragma once

#include <GASPI.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

/// For any call of GASPI.
constexpr gaspi_timeout_t kPatienceMs = 30'000;

/// Throws Error kSystem where the call did not end well. `what` it was for.
void check_gaspi(gaspi_return_t result, const std::string& what);
[[nodiscard]] std::string gaspi_version_text();

/// Where a rank is, and the ports that it has found free: for all ranks to know. Ports of rank 0 are taken.
[[nodiscard]] std::string gaspi_contact(Rank ranks);

class Gaspi {
  public:
    /// The one of this process; the first call starts GASPI, and waits for all ranks. Where gaspi_run has
    /// started them it has said how; else contacts() of all ranks do. Throws Error kUnavailable,
    /// kInvalidArgument where the ranks are others than those that it was started with.
    [[nodiscard]] static Gaspi& started(Rank self, const std::vector<std::string>& contacts);

    /// The bytes of a rank's part of a segment, to or from memory of this process.
    void read(gaspi_segment_id_t segment, Rank rank, uint64_t offset, std::byte* to, uint64_t size);
    void write(gaspi_segment_id_t segment, Rank rank, uint64_t offset, const std::byte* from, uint64_t size);

    /// All ranks make and delete segments in the same order, so that they choose the same numbers.
    [[nodiscard]] gaspi_segment_id_t take_number();
    void give_back(gaspi_segment_id_t number);

    [[nodiscard]] Rank rank() const noexcept { return self_; }

  private:
    /// GASPI moves bytes between segments alone: so many at once, each through a buffer and a queue of its
    /// own.
    class Buffer;

    Gaspi(Rank self, const std::vector<std::string>& contacts);
    [[nodiscard]] size_t take_buffer();
    /// Waits for what the queue of the buffer has.
    void finish(size_t buffer, gaspi_return_t posted, Rank rank);

    Rank self_;
    size_t ranks_;
    std::byte* buffers_ = nullptr;
    std::mutex mutex_;
    std::condition_variable given_back_;
    std::vector<size_t> free_buffers_;
    std::vector<bool> numbers_;
};

}  // namespace heddle::memory
