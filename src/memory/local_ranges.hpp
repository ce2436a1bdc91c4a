// LocalRanges: the local ranges that clients hold, by their numbers.
//
// A number is never used again, so a range that was released is told from all others. One thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "memory/cache.hpp"

namespace heddle::memory {

/// Names a client of one server.
using ClientId = uint32_t;

/// CachingAgent::hold() names each of its fields.
struct HeldRange {
    ClientId client = 0;
    CacheId cache;
    /// Null: direct.
    CacheEntry* entry = nullptr;
    std::byte* base = nullptr;
    Range range;
    bool writable = false;
    /// What it is a copy of, or, direct, what it is. Of an allocated one nothing.
    std::optional<GlobalRange> global = {};
    /// The access that holds the range for its owner alone.
    Access* exclusive = nullptr;
    /// A direct range that was got with this tag: it has been read when it is released, or put.
    std::optional<Tag> reads = {};
    /// A put that releases it is under way: nobody else may use it before that has ended.
    bool leaves = false;
};

/// Whether `named` is `held`, or a part of it. Throws kUnknown, kOutside.
void check_part_of(const LocalRange& held, const LocalRange& named);

class LocalRanges {
  public:
    [[nodiscard]] LocalRange add(const HeldRange& held);
    /// The same, but all of it is yet to be filled in.
    [[nodiscard]] HeldRange& add(uint64_t& id);
    /// The one that `local` names, all of which is within it. Throws kUnknown where it was released or is
    /// another client's, or leaves, kOutside.
    [[nodiscard]] HeldRange& find(const LocalRange& local, ClientId client);
    [[nodiscard]] bool has(const LocalRange& local) const noexcept;
    /// One that is there, also where it leaves.
    [[nodiscard]] HeldRange& at(const LocalRange& local) noexcept;
    void remove(const LocalRange& local);
    /// Ranges have places from 0 on, below this; where one was another one is later.
    [[nodiscard]] size_t places() const noexcept { return slots_.size(); }
    /// The range at that place, where the client holds it.
    [[nodiscard]] std::optional<LocalRange> held_at(size_t place, ClientId client) const;
    [[nodiscard]] size_t count() const noexcept { return count_; }

  private:
    struct Slot {
        HeldRange held;
        uint32_t generation = 1;
        bool used = false;
    };
    [[nodiscard]] static LocalRange named(uint32_t slot, uint32_t generation, const HeldRange& held);

    std::vector<Slot> slots_;
    std::vector<uint32_t> free_;
    size_t count_ = 0;
};

}  // namespace heddle::memory
