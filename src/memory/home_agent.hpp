// HomeAgent: the directory of what lies on one rank: who has copies, who writes, which tags are on it.
//
// A pure state machine: messages in, messages out. One thread at a time. It waits for nobody's user code: an
// invalidation is answered by a caching agent at once, or when a transfer under way has ended. What waits is
// found by its range and its tag, so that parking, answering and giving up one takes no longer the more
// others wait.
#pragma once

#include <boost/icl/interval_map.hpp>
#include <map>
#include <set>
#include <vector>

#include "memory/byte_intervals.hpp"
#include "memory/message.hpp"
#include "memory/range_table.hpp"
#include "memory/rank_set.hpp"
#include "memory/recycled.hpp"
#include "memory/versions.hpp"

namespace heddle::memory {

class HomeAgent {
  public:
    explicit HomeAgent(Rank self) : self_(self) {}

    /// Appends the answers to `out`.
    void handle(const Message& message, std::vector<Message>& out);
    /// A kReadRequest of this rank itself, without a tag, would be granted at once, as it has one slot.
    /// False: it is to be sent.
    [[nodiscard]] bool grants_read_here(const GlobalRange& range) const;
    /// The rank has no copies any more, and writes nothing. What it may have written in part has no tag any
    /// more. Nobody waits for readers any more, since they may have been there.
    void lost(Rank rank, std::vector<Message>& out);
    /// The allocation is gone.
    void forget(DataId data) { data_.erase(data); }

    /// Other ranks that have, or may have, copies of parts of the range. This one may have at any time: it is
    /// asked before each write.
    [[nodiscard]] std::set<Rank> sharers(const GlobalRange& range) const;
    /// Nobody reads, writes or waits.
    [[nodiscard]] bool idle() const;

  private:
    template <class Value, template <class> class Combine>
    using IntervalMap = boost::icl::interval_map<uint64_t, Value, boost::icl::partial_absorber, std::less,
                                                 Combine, boost::icl::inter_section, ByteInterval, Recycled>;
    /// A read that waits for a write, or a write: in the order of their arrival.
    struct Access {
        Message request;
        std::set<Rank> invalidating = {};
        bool started = false;
        bool is_abandoned = false;      ///< by a rank that has gone, while others let go of their copies
        std::vector<Slice> slots = {};  ///< of a write: where it goes
        std::set<Versions::Reader> known_dead = {};
        RangePlace place = {};
        /// Who waits for this one's end to look again, later ones all. Each waits for one at a time.
        std::vector<Access*> behind = {};
    };
    using Started = std::map<uint64_t, Access*, std::less<>, Recycled<std::pair<const uint64_t, Access*>>>;
    struct Data {
        IntervalMap<RankSet, boost::icl::inplace_plus> sharers;
        uint32_t reads = 0;  ///< by other ranks, where all is one version, since a write began
        Versions versions;
        RangeTable<Access> queue;          ///< of two kinds: writes and reads
        Started started;                   ///< writes, by where they begin: none overlaps another
        RangeTable<Message> tag_requests;  ///< their tag is the kind
        RangeTable<Message> readers_requests;
    };

    void enqueue(Data& data, const Message& request, std::vector<Message>& out);
    /// Starts those of ready_ that may, and who waits for nothing else then.
    void admit(Data& data, std::vector<Message>& out);
    void make_ready(Access& access);
    /// It is over: who was behind it is ready.
    void take_out(Data& data, Access& access);
    /// One that came before and is not over, of whom one at least writes; null: it may start.
    [[nodiscard]] static Access* earlier(Data& data, const Access& access);
    /// The write that was begun there; null: there is none.
    [[nodiscard]] static Access* started_at(Data& data, const Range& range);
    void grant_read(Data& data, const Message& request, std::vector<Message>& out) const;
    void add_sharer(Data& data, const Range& range, Rank rank) const;
    void start_write(Data& data, Access& access, std::vector<Message>& out);
    void tell_slots(const std::vector<Slice>& slots, const Message& request, std::vector<Message>& out) const;
    void end_write(Data& data, const Message& message, std::vector<Message>& out);
    void invalidated(Data& data, const Message& message, std::vector<Message>& out);
    [[nodiscard]] bool has_let_go(Access& access, Rank rank, std::vector<Message>& out) const;
    void await_tag(Data& data, const Message& request, std::vector<Message>& out);
    void answer_tags(Data& data, Tag tag, const Range& written, std::vector<Message>& out) const;
    /// False: some are still to read there.
    [[nodiscard]] bool answer_reader(const Data& data, const Message& request,
                                     std::vector<Message>& out) const;
    /// Of the range that something has changed for.
    void answer_readers(Data& data, const Range& range, std::vector<Message>& out) const;
    [[nodiscard]] Message answer(MessageKind kind, const Message& request) const;

    Rank self_;
    std::map<DataId, Data> data_;
    uint64_t last_number_ = 0;
    std::vector<Access*> ready_;  // a heap of admit(), empty outside of it
    bool rank_is_gone_ = false;
};

}  // namespace heddle::memory
