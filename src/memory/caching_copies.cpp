// Which copies a CachingAgent has, or is about to have, what it may read beside them, and whom it tells of
// what goes.
#include <algorithm>

#include "memory/access.hpp"
#include "memory/caching_agent.hpp"
#include "memory/home_agent.hpp"

namespace heddle::memory {
namespace {

/// What is between them is given back piece by piece, in one packet or two, while somebody waits to write.
constexpr size_t kMostCopiesToGiveBack = 256;
/// Each access that waits for a home remembers so much of what that was told.
constexpr size_t kMostToldGone = 64;

}  // namespace

template <class Function>
void CachingAgent::for_each_read(const GlobalRange& global, Function function) {
    reads_.for_each_group(global.data.value, global.range, [&](auto begin, auto end) {
        for (; begin != end; ++begin) function(*begin->second);
        return false;
    });
}

void CachingAgent::invalidate(const Message& message, Actions& actions) {
    Message done = message;
    done.kind = MessageKind::kInvalidated;
    done.from = self_;
    done.to = message.from;
    const auto delegation = delegations_.find({message.range.data, message.from});
    if (delegation != delegations_.end()) {
        delegation->second -= interval_of(message.range.range);
        // More writes may follow.
        if (has_few_copies(message.range.data))
            give_back_delegation(message.range.data, message.from, actions);
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
    for_each_read(message.range, [&](Access& access) {
        if (access.has_read(message.range)) access.answers.push_back(answer);
    });
    if (answer.use_count() == 1) actions.messages.push_back(*answer);
}

void CachingAgent::let_go(Access& access, Actions& actions) const {
    for (const std::shared_ptr<Message>& answer : access.answers)
        if (answer.use_count() == 1) actions.messages.push_back(*answer);
    access.answers.clear();
}

bool CachingAgent::has_copy_of_any(const GlobalRange& global) {
    bool found = false;
    for_each_read(global, [&](const Access&) { found = true; });
    for (const auto& [id, state] : caches_)
        state.cache.for_each_overlapping(global, [&](const CacheEntry&) { found = true; });
    return found;
}

void CachingAgent::unshare(const GlobalRange& global, Actions& actions) {
    if (!atlas_.has_data(global.data)) return;
    // This rank's home asks it before each write, and others need not be told of what may be read again.
    bool is_known = false;
    atlas_.for_each_piece(
        global, 0, [&](const Piece& piece) { is_known |= piece.home != self_ && !is_delegated(piece); });
    if (!is_known) return;
    const auto tell = [&](const GlobalRange& gone) {
        atlas_.for_each_piece(gone, 0, [&](const Piece& piece) {
            if (piece.home != self_) tell_gone(piece, actions);
        });
    };
    if (!has_copy_of_any(global)) return tell(global);
    ByteSet gone;
    gone += interval_of(global.range);
    leave_out_copies(global, gone);
    for (const ByteInterval& part : gone) tell({global.data, range_of(part)});
}

void CachingAgent::leave_out_copies(const GlobalRange& global, ByteSet& bytes) {
    for (const auto& [id, state] : caches_)
        state.cache.for_each_overlapping(
            global, [&](const CacheEntry& entry) { bytes -= interval_of(entry.global.range); });
    // What has been asked for is as good as there: a message that is sent now arrives after the request.
    for_each_read(global, [&](const Access& access) { bytes -= interval_of(access.global.range); });
}

void CachingAgent::tell_gone(const Piece& piece, Actions& actions) {
    const auto delegation = delegations_.find({piece.global.data, piece.home});
    if (delegation == delegations_.end()) return send_gone(piece.global, piece.home, actions);
    ByteSet gone;
    gone += interval_of(piece.global.range);
    gone -= delegation->second;
    for (const ByteInterval& part : gone) send_gone({piece.global.data, range_of(part)}, piece.home, actions);
}

void CachingAgent::send_gone(const GlobalRange& global, Rank home, Actions& actions) {
    actions.messages.push_back({MessageKind::kUnshare, self_, home, 0, global, {}, false});
    for_each_read({global.data, kAllBytes}, [&](Access& access) {
        if (access.granted == access.pieces.size() || access.pieces[access.granted].home != home) return;
        access.told_more |= access.told_gone.size() == kMostToldGone;
        if (!access.told_more) access.told_gone.push_back(global.range);
    });
}

bool CachingAgent::has_few_copies(DataId data) {
    size_t count = 0;
    for (const auto& [id, state] : caches_) count += state.cache.copies_of(data);
    reads_.for_each_group(data.value, kAllBytes, [&](auto begin, auto end) {
        for (; begin != end && count <= kMostCopiesToGiveBack; ++begin) ++count;
        return count > kMostCopiesToGiveBack;
    });
    return count <= kMostCopiesToGiveBack;
}

bool CachingAgent::is_delegated(const Piece& piece) const {
    const auto delegation = delegations_.find({piece.global.data, piece.home});
    return delegation != delegations_.end() &&
           boost::icl::contains(delegation->second, interval_of(piece.global.range));
}

bool CachingAgent::is_granted_here(const Piece& piece, const Actions& actions) const {
    return piece.home == self_ && home_here_ != nullptr && actions.messages.empty() &&
           home_here_->grants_read_here(piece.global);
}

void CachingAgent::take_delegation(const Access& access, Rank home) {
    ByteSet& delegated = delegations_[{access.global.data, home}];
    if (access.told_more) {
        delegated += interval_of(access.pieces[access.granted].global.range);
        return;
    }
    // The home noted all when it was asked, and has been told since of what is gone.
    delegated += interval_of(kAllBytes);
    for (const Range& gone : access.told_gone) delegated -= interval_of(gone);
}

void CachingAgent::give_back_delegation(DataId data, Rank home, Actions& actions) {
    const auto delegation = delegations_.find({data, home});
    ByteSet gone = std::move(delegation->second);
    delegations_.erase(delegation);
    leave_out_copies({data, kAllBytes}, gone);
    for (const ByteInterval& part : gone) send_gone({data, range_of(part)}, home, actions);
}

}  // namespace heddle::memory
