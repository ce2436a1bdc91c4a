// Which copies a CachingAgent has, or is about to have, and whom it tells of those that go.
#include <algorithm>
#include <boost/icl/interval_set.hpp>

#include "memory/access.hpp"
#include "memory/caching_agent.hpp"

namespace heddle::memory {
namespace {

using Interval = boost::icl::right_open_interval<uint64_t>;

constexpr Range kAll{0, UINT64_MAX};
/// What is between them is given back piece by piece, while somebody waits to write.
constexpr size_t kMostCopiesToGiveBack = 16;

Interval interval(const Range& range) {
    return {range.offset, range.end()};
}
Range range_of(const Interval& interval) {
    return {interval.lower(), interval.upper() - interval.lower()};
}

}  // namespace

void CachingAgent::stop_reading(Access& access) {
    if (access.reading == 0) return;
    Access* const last = reading_.back();
    reading_[access.reading - 1] = last;
    last->reading = access.reading;
    reading_.pop_back();
    access.reading = 0;
}

void CachingAgent::invalidate(const Message& message, Actions& actions) {
    Message done = message;
    done.kind = MessageKind::kInvalidated;
    done.from = self_;
    done.to = message.from;
    const auto consent = consents_.find({message.range.data, message.from});
    if (consent != consents_.end()) {
        consent->second -= interval(message.range.range);
        // More writes may follow.
        if (copies_of(message.range.data) <= kMostCopiesToGiveBack)
            give_back_consent(message.range.data, message.from, actions);
    }
    if (!has_copy_of_any(message.range)) return actions.messages.push_back(done);
    const auto answer = std::make_shared<Message>(done);
    std::vector<GlobalRange> withdrawn;
    for (auto& one : caches_) {
        CacheState& state = one.second;
        state.cache.for_each_overlapping(message.range, [&](CacheEntry& entry) {
            const bool under_way = entry.state == CacheEntry::State::kFetching;
            if (under_way && !entry.access->has_read(message.range)) return;
            ++state.counters.invalidations;
            if (!under_way && entry.global != message.range) withdrawn.push_back(entry.global);
            state.cache.withdraw(entry);
        });
    }
    for (const GlobalRange& global : withdrawn) unshare(global, actions);
    // What is being fetched is shown to those who asked for it: it was there when they asked.
    for (Access* const access : reading_)
        if (access->has_read(message.range)) access->answers.push_back(answer);
    if (answer.use_count() == 1) actions.messages.push_back(*answer);
}

void CachingAgent::let_go(Access& access, Actions& actions) const {
    for (const std::shared_ptr<Message>& answer : access.answers)
        if (answer.use_count() == 1) actions.messages.push_back(*answer);
    access.answers.clear();
}

bool CachingAgent::has_copy_of_any(const GlobalRange& global) const {
    bool found = false;
    for (const auto& [id, state] : caches_)
        state.cache.for_each_overlapping(global, [&](const CacheEntry&) { found = true; });
    return found || std::ranges::any_of(reading_, [&](const Access* access) {
               return access->global.data == global.data && access->global.range.overlaps(global.range);
           });
}

void CachingAgent::unshare(const GlobalRange& global, Actions& actions) const {
    if (!atlas_.has_data(global.data)) return;
    // This rank's home asks it before each write, and others need not be told of what may be read again.
    bool is_known = false;
    atlas_.for_each_piece(global, 0,
                          [&](const Piece& piece) { is_known |= piece.home != self_ && !may_read(piece); });
    if (!is_known) return;
    const auto tell = [&](const GlobalRange& gone) {
        atlas_.for_each_piece(gone, 0, [&](const Piece& piece) {
            if (piece.home != self_) tell_gone(piece, actions);
        });
    };
    if (!has_copy_of_any(global)) return tell(global);
    Bytes gone;
    gone += interval(global.range);
    leave_out_copies(global, gone);
    for (const Interval& part : gone) tell({global.data, range_of(part)});
}

void CachingAgent::leave_out_copies(const GlobalRange& global, Bytes& bytes) const {
    for (const auto& [id, state] : caches_)
        state.cache.for_each_overlapping(
            global, [&](const CacheEntry& entry) { bytes -= interval(entry.global.range); });
    // What has been asked for is as good as there: a message that is sent now arrives after the request.
    for (const Access* const access : reading_)
        if (access->global.data == global.data) bytes -= interval(access->global.range);
}

void CachingAgent::tell_gone(const Piece& piece, Actions& actions) const {
    const auto consent = consents_.find({piece.global.data, piece.home});
    if (consent == consents_.end()) return send_gone(piece.global, piece.home, actions);
    Bytes gone;
    gone += interval(piece.global.range);
    gone -= consent->second;
    for (const Interval& part : gone) send_gone({piece.global.data, range_of(part)}, piece.home, actions);
}

void CachingAgent::send_gone(const GlobalRange& global, Rank home, Actions& actions) const {
    actions.messages.push_back({MessageKind::kUnshare, self_, home, 0, global, {}, false});
    for (Access* const access : reading_)
        if (access->global.data == global.data) access->told_gone = true;
}

size_t CachingAgent::copies_of(DataId data) const {
    size_t all = reading_.size();
    for (const auto& [id, state] : caches_) all += state.cache.copies_of(data);
    return all;
}

bool CachingAgent::may_read(const Piece& piece) const {
    const auto consent = consents_.find({piece.global.data, piece.home});
    return consent != consents_.end() && boost::icl::contains(consent->second, interval(piece.global.range));
}

void CachingAgent::take_consent(const Access& access, Rank home, Actions& actions) {
    const DataId data = access.global.data;
    consents_[{data, home}] += interval(kAll);
    // The home has noted all before it heard of what was gone, and goes on with what is left.
    if (access.told_gone) give_back_consent(data, home, actions);
}

void CachingAgent::give_back_consent(DataId data, Rank home, Actions& actions) {
    const auto consent = consents_.find({data, home});
    Bytes gone = std::move(consent->second);
    consents_.erase(consent);
    leave_out_copies({data, kAll}, gone);
    for (const Interval& part : gone) send_gone({data, range_of(part)}, home, actions);
}

}  // namespace heddle::memory
