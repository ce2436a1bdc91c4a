// Access: a get that misses, or a put, on its way through the homes of its range to its transfer.
//
// Of one caching agent.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "memory/atlas.hpp"
#include "memory/cache.hpp"
#include "memory/caching_agent.hpp"
#include "memory/versions.hpp"

namespace heddle::memory {

/// What an access is, but for its lists.
struct AccessState {
    enum class Purpose { kCopy, kOwnCopy, kExclusive, kPut, kCopyWithin };
    uint64_t id = 0;
    Purpose purpose = Purpose::kCopy;
    GlobalRange global = {};
    /// How many pieces, from the first on, their homes have granted.
    size_t granted = 0;
    /// How many homes have still to tell that the tag is there. While there are any nothing is granted.
    size_t awaited_tags = 0;
    /// How many homes have still to tell that nobody is to read there any more. Nothing is granted, either.
    size_t awaited_readers = 0;
    /// A put that waits for an earlier one of this rank, so that puts with readers stay in order.
    bool behind = false;
    /// Later puts of this rank may be behind it.
    bool ordered = false;
    /// The tag that is waited for, or the one that is put.
    std::optional<Tag> tag = {};

    CacheId cache = {};
    /// Where the copy goes, or where a put comes from; null for a direct source.
    CacheEntry* entry = nullptr;
    std::byte* memory = nullptr;

    /// Its bytes are being moved: it ends when they are.
    bool moving = false;
    /// An exclusive one that has been got: it ends when it is put or released.
    bool held = false;
    /// Its homes want to know of each get.
    bool counted = false;
    /// Of a put.
    uint32_t readers = 0;
    uint32_t retain = 0;
    /// Readers of whose death its writer hears by it.
    uint32_t lost_readers = 0;
    bool whole_entry = false;
    /// What it releases when it has gone well.
    std::optional<LocalRange> released = {};
    /// Of a put from a direct range to itself: there is nothing to move.
    bool in_place = false;
    bool last_first = false;  ///< a put from the same allocation to a place above: it may overlap its source
    /// Of a put from a direct range: the allocation whose bytes it reads.
    std::optional<DataId> direct_source = {};
    /// That was freed: it fails as soon as no home is about to consent to it.
    bool source_is_gone = false;
    /// The exclusive access whose consent it uses, and ends.
    Access* under = nullptr;
    /// More was told than `told_gone` keeps.
    bool told_more = false;
    /// Of kCopyWithin.
    CacheEntry* source = nullptr;
};

struct Access : AccessState {
    std::vector<Piece> pieces = {};
    /// What its transfer moves.
    std::vector<Transfer::Part> parts = {};
    /// Who gets a part of the copy when it is there; of a put its ticket.
    std::vector<Get> waiters = {};
    /// Answers that wait for the end of this and perhaps other transfers: the copy is one of the past then.
    std::vector<std::shared_ptr<Message>> answers = {};
    /// Where its pieces lie, of those that have more than one slot.
    std::vector<Slice> slices = {};
    /// What the home that it waits for was told to be gone since it asked, of the allocation.
    std::vector<Range> told_gone = {};
    /// Puts that wait for its end, by their numbers: some may have ended before.
    std::vector<uint64_t> followers = {};

    /// As a new one, but for the room that its lists have.
    void renew() {
        static_cast<AccessState&>(*this) = {};
        pieces.clear();
        parts.clear();
        waiters.clear();
        answers.clear();
        slices.clear();
        told_gone.clear();
        followers.clear();
    }

    /// Of the operation that it was begun for, or of one that has joined it; 0: all have left.
    [[nodiscard]] Ticket ticket() const noexcept { return waiters.empty() ? 0 : waiters.front().ticket; }
    [[nodiscard]] bool is_write() const noexcept {
        return purpose == Purpose::kPut || purpose == Purpose::kExclusive;
    }
    /// It waits, with nothing granted, for readers.
    [[nodiscard]] bool is_held_back() const noexcept { return behind || awaited_readers > 0; }
    /// It reads or writes bytes of that allocation.
    [[nodiscard]] bool is_of(DataId data) const noexcept {
        return global.data == data || direct_source == data;
    }
    [[nodiscard]] bool is_read() const noexcept {
        return purpose == Purpose::kCopy || purpose == Purpose::kOwnCopy;
    }
    /// A copy of what lies there has been, or is being, fetched by the consent of its home.
    [[nodiscard]] bool has_read(const GlobalRange& range) const noexcept {
        if (!is_read() || range.data != global.data) return false;
        for (size_t i = 0; i < granted; ++i)
            if (pieces[i].global.range.overlaps(range.range)) return true;
        return false;
    }
};

/// In tables of accesses: their allocation is the kind.
[[nodiscard]] inline RangePlace place_of(const Access& access) {
    return RangeTable<Access*>::place(access.global.data.value, access.global.range, 0, access.id);
}

}  // namespace heddle::memory
