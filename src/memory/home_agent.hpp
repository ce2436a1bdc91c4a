// HomeAgent: the directory of what lies on one rank: who has copies, who writes, which tags are on it.
//
// A pure state machine: messages in, messages out. One thread at a time. It waits for nobody's user code: an
// invalidation is answered by a caching agent at once, or when a transfer under way has ended.
#pragma once

#include <boost/icl/interval_map.hpp>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "memory/message.hpp"
#include "memory/rank_set.hpp"
#include "memory/recycled.hpp"
#include "memory/versions.hpp"

namespace heddle::memory {

class HomeAgent {
  public:
    explicit HomeAgent(Rank self) : self_(self) {}

    /// Appends the answers to `out`.
    void handle(const Message& message, std::vector<Message>& out);
    /// The rank has no copies any more, and writes nothing. What it may have written in part has no tag any
    /// more. Nobody waits for readers any more, since they may have been there.
    void lost(Rank rank, std::vector<Message>& out);
    /// The allocation is gone.
    void forget(DataId data) { data_.erase(data); }

    /// Ranks that have, or may have, copies of parts of the range.
    [[nodiscard]] std::set<Rank> sharers(const GlobalRange& range) const;
    /// Nobody reads, writes or waits.
    [[nodiscard]] bool idle() const;

  private:
    using Interval = boost::icl::right_open_interval<uint64_t>;
    template <class Value, template <class> class Combine>
    using IntervalMap = boost::icl::interval_map<uint64_t, Value, boost::icl::partial_absorber, std::less,
                                                 Combine, boost::icl::inter_section, Interval, Recycled>;
    /// A read that waits for a write, or a write: in the order of their arrival.
    struct Access {
        Message request;
        std::set<Rank> invalidating = {};
        bool started = false;
        bool is_abandoned = false;      ///< by a rank that has gone, while others let go of their copies
        std::vector<Slice> slots = {};  ///< of a write: where it goes
        std::set<Versions::Reader> known_dead = {};
    };
    struct Data {
        IntervalMap<RankSet, boost::icl::inplace_plus> sharers;
        Versions versions;
        std::list<Access, Recycled<Access>> queue;
        std::list<Message> tag_requests;
        std::list<Message> readers_requests;
    };

    void admit(Data& data, std::vector<Message>& out);
    [[nodiscard]] static bool may_start(const Data& data, const Access& access);
    void grant_read(Data& data, const Message& request, std::vector<Message>& out) const;
    void start_write(Data& data, Access& access, std::vector<Message>& out);
    void tell_slots(const std::vector<Slice>& slots, const Message& request, std::vector<Message>& out) const;
    void end_write(Data& data, const Message& message, std::vector<Message>& out);
    void invalidated(Data& data, const Message& message, std::vector<Message>& out);
    [[nodiscard]] bool has_let_go(Access& access, Rank rank, std::vector<Message>& out) const;
    void answer_tags(Data& data, std::vector<Message>& out) const;
    void answer_readers(Data& data, std::vector<Message>& out) const;
    [[nodiscard]] Message answer(MessageKind kind, const Message& request) const;

    Rank self_;
    std::map<DataId, Data> data_;
    bool rank_is_gone_ = false;
};

}  // namespace heddle::memory
