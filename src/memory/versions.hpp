// Versions: what puts with tags have left on the bytes of one allocation that lie on one rank, and who is
// still to read it (docs/COHERENCE.md, Readers).
//
// Of one home agent. A byte has a newest version, and earlier ones that are still to be read; each lies in a
// slot of the allocation (atlas.hpp) of its own. Where nobody says how many are to read there is slot 0
// alone.
#pragma once

#include <boost/icl/interval_map.hpp>
#include <set>
#include <utility>
#include <vector>

#include "heddle/memory_types.hpp"
#include "memory/byte_intervals.hpp"
#include "memory/local_ranges.hpp"

namespace heddle::memory {

/// Some bytes, and the slot in which a version of them lies.
struct Slice {
    Range range;
    uint32_t slot = 0;
};

class Versions {
  public:
    using Reader = std::pair<Rank, ClientId>;
    struct Found {
        /// All of the range; none where it is all in slot 0.
        std::vector<Slice> slices;
        bool earlier = false;  ///< some of it is not the newest
        bool counted = false;  ///< its readers are counted
    };

    /// All bytes lie in slot 0, without a tag, and nobody counts their readers.
    [[nodiscard]] bool empty() const { return states_.empty(); }
    /// The newest version of all of the range lies in slot 0.
    [[nodiscard]] bool in_first_slot(const Range& range) const {
        return states_.empty() || find(range, {})->slices.empty();
    }
    /// The newest, or the one with that tag. Nothing: not all bytes have that tag.
    [[nodiscard]] std::optional<Found> find(const Range& range, std::optional<Tag> tag) const;
    /// No byte has more than `retain` versions that are still to be read, nor one with that tag.
    [[nodiscard]] bool may_write(const Range& range, uint32_t retain, std::optional<Tag> tag) const;
    /// Where the next version goes, which may_write(): no slot beyond as many as are retained. As Found.
    [[nodiscard]] std::vector<Slice> slots_to_write(const Range& range) const;
    /// It is there. Versions that nobody is to read go. Of its readers those who have died meanwhile are not
    /// waited for, unless its writer knew of them.
    void written(const Range& range, const std::vector<Slice>& slots, std::optional<Tag> tag,
                 uint32_t readers, const std::set<Reader>& known_dead = {});
    /// Who was to write there has gone, and may have written in part: where that is over the newest version
    /// it has no tag any more. Slots as of slots_to_write().
    void spoiled(const Range& range, const std::vector<Slice>& slots);

    /// It counts once for each call.
    void has_read(const Range& range, Tag tag, const Reader& reader);
    /// What it has not read is not waited for; the next writer is to be told.
    void reader_died(const Range& range, const Reader& reader);
    /// Who has died of which no writer has been told.
    [[nodiscard]] std::set<Reader> lost_readers(const Range& range) const;
    void told_of(const Range& range, const Reader& reader);

  private:
    struct Version {
        Tag tag = 0;
        uint32_t readers = 0;  ///< who are still to read it
        uint32_t slot = 0;
        std::set<Reader> read_by = {};
        friend auto operator<=>(const Version&, const Version&) = default;
    };
    struct State {
        bool has_tag = false;  ///< the newest one has
        Version newest = {};
        std::vector<Version> earlier = {};  ///< which are to be read, the oldest first

        [[nodiscard]] bool is_unread() const { return has_tag && newest.readers > 0; }
        friend auto operator<=>(const State&, const State&) = default;
    };

    /// Calls it with each part of the range, and its state.
    template <class Function>
    void for_each_part(const Range& range, Function function) const;
    /// Gives each part of the range the state that the function makes of its own.
    template <class Function>
    void change(const Range& range, Function function);

    boost::icl::interval_map<uint64_t, std::optional<State>, boost::icl::partial_absorber, std::less,
                             boost::icl::inplace_max, boost::icl::inter_section, ByteInterval>
        states_;
    /// Who has died, and no writer has been told yet.
    boost::icl::interval_map<uint64_t, std::set<Reader>, boost::icl::partial_absorber, std::less,
                             boost::icl::inplace_plus, boost::icl::inter_section, ByteInterval>
        readers_died_;
};

}  // namespace heddle::memory
