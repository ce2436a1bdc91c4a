// Which copies a CachingAgent has, or is about to have, and whom it tells of those that go.
#include <algorithm>
#include <boost/icl/interval_set.hpp>

#include "memory/access.hpp"
#include "memory/caching_agent.hpp"

namespace heddle::memory {

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
    // This rank's home asks it before each write.
    bool lies_elsewhere = false;
    atlas_.for_each_piece(global, 0, [&](const Piece& piece) { lies_elsewhere |= piece.home != self_; });
    if (!lies_elsewhere) return;
    const auto tell = [&](const GlobalRange& gone) {
        atlas_.for_each_piece(gone, 0, [&](const Piece& piece) {
            if (piece.home == self_) return;
            actions.messages.push_back(
                {MessageKind::kUnshare, self_, piece.home, 0, piece.global, {}, false});
        });
    };
    if (!has_copy_of_any(global)) return tell(global);
    using Interval = boost::icl::right_open_interval<uint64_t>;
    boost::icl::interval_set<uint64_t, std::less, Interval> gone;
    gone += Interval(global.range.offset, global.range.end());
    const auto stays = [&](const GlobalRange& copy) {
        gone -= Interval(copy.range.offset, copy.range.end());
    };
    for (const auto& [id, state] : caches_)
        state.cache.for_each_overlapping(global, [&](const CacheEntry& entry) { stays(entry.global); });
    // What has been asked for is as good as there: this message arrives after the request.
    for (const Access* const access : reading_)
        if (access->global.data == global.data) stays(access->global);
    for (const Interval& part : gone) tell({global.data, {part.lower(), part.upper() - part.lower()}});
}

}  // namespace heddle::memory
