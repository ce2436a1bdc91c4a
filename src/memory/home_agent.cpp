#include "memory/home_agent.hpp"

#include <algorithm>

namespace heddle::memory {
namespace {

using Interval = boost::icl::right_open_interval<uint64_t>;

Interval interval(const Range& range) {
    return {range.offset, range.end()};
}

bool is_write(const Message& request) {
    return request.kind == MessageKind::kWriteRequest;
}

Versions::Reader reader_of(const Message& message) {
    return {message.from, static_cast<ClientId>(message.access)};
}

bool same_access(const Message& a, const Message& b) {
    return a.from == b.from && a.access == b.access && a.range == b.range;
}

}  // namespace

void HomeAgent::handle(const Message& message, std::vector<Message>& out) {
    // Of an allocation that is freed meanwhile only news may still come.
    const bool asks =
        message.kind == MessageKind::kReadRequest || message.kind == MessageKind::kWriteRequest ||
        message.kind == MessageKind::kTagRequest || message.kind == MessageKind::kReadersRequest ||
        message.kind == MessageKind::kReaderDied;
    auto found = data_.find(message.range.data);
    if (found == data_.end()) {
        if (!asks) return;
        found = data_.try_emplace(message.range.data).first;
    }
    Data& data = found->second;
    switch (message.kind) {
        case MessageKind::kReadRequest:
            if (data.queue.empty()) return grant_read(data, message, out);
            [[fallthrough]];
        case MessageKind::kWriteRequest:
            data.queue.push_back({message});
            return admit(data, out);
        case MessageKind::kKnownDead:
            for (Access& access : data.queue)
                if (access.started && same_access(access.request, message))
                    access.known_dead.emplace(message.reader_rank, message.reader_client);
            return;
        case MessageKind::kWriteDone:
        case MessageKind::kWriteGivenUp:
            return end_write(data, message, out);
        case MessageKind::kTagRequest:
            data.tag_requests.push_back(message);
            return answer_tags(data, out);
        case MessageKind::kReadersRequest:
            data.readers_requests.push_back(message);
            return answer_readers(data, out);
        case MessageKind::kWaitGivenUp:
            for (auto* waiting : {&data.tag_requests, &data.readers_requests})
                waiting->remove_if([&](const Message& one) { return same_access(one, message); });
            return;
        case MessageKind::kHasRead:
            if (message.tag) data.versions.has_read(message.range.range, *message.tag, reader_of(message));
            return answer_readers(data, out);
        case MessageKind::kReaderDied:
            data.versions.reader_died(message.range.range, reader_of(message));
            return answer_readers(data, out);
        case MessageKind::kDeathIsTold:
            return data.versions.told_of(message.range.range, {message.reader_rank, message.reader_client});
        case MessageKind::kInvalidated:
            return invalidated(data, message, out);
        case MessageKind::kUnshare:
            data.sharers -= std::make_pair(interval(message.range.range), RankSet(message.from));
            return;
        default:
            return;  // for caching agents
    }
}

bool HomeAgent::may_start(const Data& data, const Access& access) {
    for (const Access& earlier : data.queue) {
        if (&earlier == &access) break;
        if (earlier.request.range.range.overlaps(access.request.range.range) &&
            (is_write(earlier.request) || is_write(access.request)))
            return false;
    }
    return true;
}

void HomeAgent::admit(Data& data, std::vector<Message>& out) {
    for (auto access = data.queue.begin(); access != data.queue.end();) {
        const auto here = access++;
        if (here->started || !may_start(data, *here)) continue;
        const Message& request = here->request;
        const Range& range = request.range.range;
        if (is_write(request) && (!data.versions.may_write(range, request.retain, request.tag) ||
                                  !data.versions.lost_readers(range).empty())) {
            out.push_back(answer(MessageKind::kWriteRefused, here->request));
            data.queue.erase(here);
        } else if (is_write(here->request)) {
            start_write(data, *here, out);
        } else {
            grant_read(data, here->request, out);
            data.queue.erase(here);
        }
    }
}

void HomeAgent::grant_read(Data& data, const Message& request, std::vector<Message>& out) const {
    const auto found = data.versions.find(request.range.range, request.tag);
    if (!found) return out.push_back(answer(MessageKind::kReadRefused, request));
    data.sharers += std::make_pair(interval(request.range.range), RankSet(request.from));
    tell_slots(found->slices, request, out);
    out.push_back(answer(MessageKind::kReadGrant, request));
    out.back().readers = found->counted ? 1 : 0;
    out.back().earlier = found->earlier;
}

void HomeAgent::tell_slots(const std::vector<Slice>& slots, const Message& request,
                           std::vector<Message>& out) const {
    for (const Slice& slice : slots) {
        out.push_back(answer(MessageKind::kSlotIs, request));
        out.back().range.range = slice.range;
        out.back().slot = slice.slot;
    }
}

void HomeAgent::start_write(Data& data, Access& access, std::vector<Message>& out) {
    access.started = true;
    const Message& request = access.request;
    access.slots = data.versions.slots_to_write(request.range.range);
    tell_slots(access.slots, request, out);
    access.invalidating = sharers(request.range);
    data.sharers -= interval(request.range.range);
    for (const Rank rank : access.invalidating) {
        Message invalidate = answer(MessageKind::kInvalidate, request);
        invalidate.to = rank;
        out.push_back(invalidate);
    }
    if (access.invalidating.empty()) out.push_back(answer(MessageKind::kWriteGrant, request));
}

void HomeAgent::invalidated(Data& data, const Message& message, std::vector<Message>& out) {
    bool ended = false;
    data.queue.remove_if([&](Access& access) {
        if (access.request.access != message.access || access.request.range != message.range) return false;
        const bool ends = has_let_go(access, message.from, out);
        ended |= ends;
        return ends;
    });
    if (ended) admit(data, out);
}

/// `rank` has no copies for that write any more. True: it was the last one, and the write is nobody's.
bool HomeAgent::has_let_go(Access& access, Rank rank, std::vector<Message>& out) const {
    if (access.invalidating.erase(rank) == 0 || !access.invalidating.empty()) return false;
    if (!access.is_abandoned) out.push_back(answer(MessageKind::kWriteGrant, access.request));
    return access.is_abandoned;
}

void HomeAgent::lost(Rank rank, std::vector<Message>& out) {
    rank_is_gone_ = true;
    for (auto& one : data_) {
        Data& data = one.second;  // a lambda below needs it by a name of its own
        data.sharers -= std::make_pair(Interval(0, UINT64_MAX), RankSet(rank));
        for (auto* waiting : {&data.tag_requests, &data.readers_requests})
            waiting->remove_if([&](const Message& request) { return request.from == rank; });
        answer_readers(data, out);
        data.queue.remove_if([&](Access& access) {
            if (access.request.from != rank) return false;
            // Whoever writes next may not before those who have copies have let go of them.
            access.is_abandoned = !access.invalidating.empty();
            if (access.started && !access.is_abandoned)
                data.versions.spoiled(access.request.range.range, access.slots);
            return !access.is_abandoned;
        });
        data.queue.remove_if([&](Access& access) { return has_let_go(access, rank, out); });
        admit(data, out);
    }
}

void HomeAgent::end_write(Data& data, const Message& message, std::vector<Message>& out) {
    // What was got exclusively may have been written in part.
    const auto written = std::ranges::find_if(data.queue, [&](const Access& access) {
        return access.started && access.request.from == message.from &&
               access.request.access == message.access &&
               access.request.range.range.contains(message.range.range);
    });
    if (written == data.queue.end()) return;
    const Access ended = std::move(*written);
    data.queue.erase(written);
    if (message.kind == MessageKind::kWriteDone) {
        data.versions.written(message.range.range, ended.slots, message.tag, message.readers,
                              ended.known_dead);
        if (message.keeps_copy)
            data.sharers += std::make_pair(interval(message.range.range), RankSet(message.from));
    }
    answer_tags(data, out);
    admit(data, out);
}

void HomeAgent::answer_tags(Data& data, std::vector<Message>& out) const {
    data.tag_requests.remove_if([&](const Message& request) {
        const auto found = data.versions.find(request.range.range, request.tag);
        if (!found) return false;
        out.push_back(answer(MessageKind::kTagReached, request));
        out.back().readers = found->counted ? 1 : 0;
        return true;
    });
}

void HomeAgent::answer_readers(Data& data, std::vector<Message>& out) const {
    data.readers_requests.remove_if([&](const Message& request) {
        const Range& range = request.range.range;
        const bool left = !data.versions.may_write(range, request.retain, request.tag);
        const std::set<Versions::Reader> died = data.versions.lost_readers(range);
        if (left && died.empty() && !rank_is_gone_) return false;
        for (const auto& [rank, client] : died) {
            out.push_back(answer(MessageKind::kDeadReaderIs, request));
            out.back().reader_rank = rank;
            out.back().reader_client = client;
        }
        const bool lost = left || !died.empty();
        out.push_back(answer(lost ? MessageKind::kReadersLost : MessageKind::kReadersGone, request));
        out.back().readers = static_cast<uint32_t>(died.size());
        return true;
    });
}

Message HomeAgent::answer(MessageKind kind, const Message& request) const {
    return {kind, self_, request.from, request.access, request.range, request.tag, false};
}

std::set<Rank> HomeAgent::sharers(const GlobalRange& range) const {
    std::set<Rank> all;
    const auto data = data_.find(range.data);
    if (data == data_.end()) return all;
    const auto [first, last] = data->second.sharers.equal_range(interval(range.range));
    for (auto one = first; one != last; ++one) one->second.add_to(all);
    return all;
}

bool HomeAgent::idle() const {
    return std::ranges::all_of(data_, [](const auto& one) {
        return one.second.queue.empty() && one.second.tag_requests.empty() &&
               one.second.readers_requests.empty();
    });
}

}  // namespace heddle::memory
