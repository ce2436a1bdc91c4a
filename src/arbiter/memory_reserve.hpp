// MemoryReserve: memory put aside, so that a turn of the arbiter's loop that has begun comes to its end.
//
// While one lives, it is the process's new_handler: an allocation that fails gives the reserve back to the
// system and is tried again. So no decision of the arbiter is left half made. Afterwards spent() is true
// until refill() finds memory again; its owner takes on nothing new meanwhile. An allocation that fails with
// the reserve spent throws std::bad_alloc as usual. One at a time, in the process that owns its new_handler,
// never in a library's user. The reserve is not touched, so it costs address space and no memory. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>

namespace heddle {

class MemoryReserve {
  public:
    /// For an arbiter: more than twice what a decision about 1,024 CPUs and 256 clients needs.
    static constexpr size_t kBytes = size_t{8} << 20;

    explicit MemoryReserve(size_t bytes);
    ~MemoryReserve();
    MemoryReserve(const MemoryReserve&) = delete;
    MemoryReserve& operator=(const MemoryReserve&) = delete;

    [[nodiscard]] bool spent() const { return block_.load() == nullptr; }
    /// Puts the memory aside again; false where there is none yet.
    bool refill();

  private:
    static void spend();

    size_t bytes_;
    std::atomic<void*> block_;
    std::new_handler before_;
};

}  // namespace heddle
