#include "memory/home_agent.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace heddle::memory {
namespace {

bool is_write(const Message& request) {
    return request.kind == MessageKind::kWriteRequest;
}

Versions::Reader reader_of(const Message& message) {
    return {message.from, static_cast<ClientId>(message.access)};
}

bool same_access(const Message& a, const Message& b) {
    return a.from == b.from && a.access == b.access && a.range == b.range;
}

constexpr uint64_t kWrites = 0, kReads = 1;
/// What is granted one by one after a write. Who writes where others may read all pays for one more round.
constexpr uint32_t kReadsOneByOne = 8;

/// Of who waits for a tag, or, of kind 0, for readers.
RangePlace waiting_place(uint64_t kind, const Message& request) {
    return RangeTable<Message>::place(kind, request.range.range, request.from, request.access);
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
            return enqueue(data, message, out);
        case MessageKind::kWriteRequest:
            return enqueue(data, message, out);
        case MessageKind::kKnownDead:
            if (Access* const access = started_at(data, message.range.range))
                if (same_access(access->request, message))
                    access->known_dead.emplace(message.reader_rank, message.reader_client);
            return;
        case MessageKind::kWriteDone:
        case MessageKind::kWriteGivenUp:
            return end_write(data, message, out);
        case MessageKind::kTagRequest:
            return await_tag(data, message, out);
        case MessageKind::kReadersRequest:
            if (!answer_reader(data, message, out))
                data.readers_requests.add(waiting_place(0, message), message);
            return;
        case MessageKind::kWaitGivenUp:
            if (message.tag) data.tag_requests.erase(waiting_place(*message.tag, message));
            data.readers_requests.erase(waiting_place(0, message));
            return;
        case MessageKind::kHasRead:
            if (message.tag) data.versions.has_read(message.range.range, *message.tag, reader_of(message));
            return answer_readers(data, message.range.range, out);
        case MessageKind::kReaderDied:
            data.versions.reader_died(message.range.range, reader_of(message));
            return answer_readers(data, message.range.range, out);
        case MessageKind::kDeathIsTold:
            return data.versions.told_of(message.range.range, {message.reader_rank, message.reader_client});
        case MessageKind::kInvalidated:
            return invalidated(data, message, out);
        case MessageKind::kUnshare:
            data.sharers -= std::make_pair(interval_of(message.range.range), RankSet(message.from));
            return;
        default:
            return;  // for caching agents
    }
}

bool HomeAgent::grants_read_here(const GlobalRange& range) const {
    const auto data = data_.find(range.data);
    return data == data_.end() ||
           (data->second.queue.empty() && data->second.versions.in_first_slot(range.range));
}

void HomeAgent::enqueue(Data& data, const Message& request, std::vector<Message>& out) {
    const RangePlace place = RangeTable<Access>::place(is_write(request) ? kWrites : kReads,
                                                       request.range.range, 0, ++last_number_);
    Access& access = data.queue.add(place, {request})->second;
    access.place = place;
    make_ready(access);
    admit(data, out);
}

HomeAgent::Access* HomeAgent::earlier(Data& data, const Access& access) {
    const Range& range = access.request.range.range;
    auto found = data.queue.find_before(kWrites, range, access.place.number);
    if (found == data.queue.end() && is_write(access.request))
        found = data.queue.find_before(kReads, range, access.place.number);
    return found == data.queue.end() ? nullptr : &found->second;
}

HomeAgent::Access* HomeAgent::started_at(Data& data, const Range& range) {
    const auto after = data.started.upper_bound(range.offset);
    if (after == data.started.begin()) return nullptr;
    Access* const access = std::prev(after)->second;
    return access->request.range.range.contains(range) ? access : nullptr;
}

void HomeAgent::make_ready(Access& access) {
    ready_.push_back(&access);
    std::ranges::push_heap(ready_, std::greater(), [](const Access* one) { return one->place.number; });
}

void HomeAgent::take_out(Data& data, Access& access) {
    for (Access* const next : access.behind) make_ready(*next);
    if (access.started) data.started.erase(access.request.range.range.offset);
    data.queue.erase(access.place);
}

void HomeAgent::admit(Data& data, std::vector<Message>& out) {
    // In the order in which they came, so that each looks for another one once for all that ends here.
    while (!ready_.empty()) {
        std::ranges::pop_heap(ready_, std::greater(), [](const Access* one) { return one->place.number; });
        Access& access = *ready_.back();
        ready_.pop_back();
        if (Access* const first = earlier(data, access)) {
            first->behind.push_back(&access);
            continue;
        }
        const Message& request = access.request;
        const Range& range = request.range.range;
        if (!is_write(request)) {
            grant_read(data, request, out);
        } else if (data.versions.may_write(range, request.retain, request.tag) &&
                   data.versions.lost_readers(range).empty()) {
            start_write(data, access, out);
            continue;
        } else {
            out.push_back(answer(MessageKind::kWriteRefused, request));
        }
        take_out(data, access);
    }
}

void HomeAgent::grant_read(Data& data, const Message& request, std::vector<Message>& out) const {
    const auto found = data.versions.find(request.range.range, request.tag);
    if (!found) return out.push_back(answer(MessageKind::kReadRefused, request));
    const bool counts = request.from != self_ && !request.tag && data.queue.empty() && data.versions.empty();
    const bool delegates = counts && data.reads == kReadsOneByOne;
    if (counts && !delegates) ++data.reads;
    add_sharer(data, delegates ? kAllBytes : request.range.range, request.from);
    tell_slots(found->slices, request, out);
    out.push_back(answer(MessageKind::kReadGrant, request));
    out.back().readers = found->counted ? 1 : 0;
    out.back().earlier = found->earlier;
    out.back().delegates = delegates;
}

void HomeAgent::add_sharer(Data& data, const Range& range, Rank rank) const {
    if (rank != self_) data.sharers += std::make_pair(interval_of(range), RankSet(rank));
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
    data.reads = 0;
    data.started.emplace(access.request.range.range.offset, &access);
    const Message& request = access.request;
    access.slots = data.versions.slots_to_write(request.range.range);
    tell_slots(access.slots, request, out);
    access.invalidating = sharers(request.range);
    access.invalidating.insert(self_);
    data.sharers -= interval_of(request.range.range);
    for (const Rank rank : access.invalidating) {
        Message invalidate = answer(MessageKind::kInvalidate, request);
        invalidate.to = rank;
        out.push_back(invalidate);
    }
}

void HomeAgent::invalidated(Data& data, const Message& message, std::vector<Message>& out) {
    Access* const access = started_at(data, message.range.range);
    if (access == nullptr || access->request.access != message.access ||
        access->request.range != message.range || !has_let_go(*access, message.from, out))
        return;
    take_out(data, *access);
    admit(data, out);
}

/// `rank` has no copies for that write any more. True: it was the last one, and the write is nobody's.
bool HomeAgent::has_let_go(Access& access, Rank rank, std::vector<Message>& out) const {
    if (access.invalidating.erase(rank) == 0 || !access.invalidating.empty()) return false;
    if (!access.is_abandoned) out.push_back(answer(MessageKind::kWriteGrant, access.request));
    return access.is_abandoned;
}

void HomeAgent::lost(Rank rank, std::vector<Message>& out) {
    rank_is_gone_ = true;
    for (auto& [id, data] : data_) {
        data.sharers -= std::make_pair(interval_of(kAllBytes), RankSet(rank));
        for (auto* waiting : {&data.tag_requests, &data.readers_requests})
            for (auto one = waiting->begin(); one != waiting->end();)
                one = one->second.from == rank ? waiting->erase(one) : std::next(one);
        answer_readers(data, kAllBytes, out);
        for (auto one = data.queue.begin(); one != data.queue.end();) {
            Access& access = (one++)->second;
            access.behind.clear();
            const bool is_of_it = access.request.from == rank;
            // Whoever writes next may not before those who have copies have let go of them.
            if (is_of_it) access.is_abandoned = !access.invalidating.empty();
            if (is_of_it && access.started && !access.is_abandoned)
                data.versions.spoiled(access.request.range.range, access.slots);
            const bool ends = is_of_it && !access.is_abandoned;
            if (has_let_go(access, rank, out) || ends) take_out(data, access);
        }
        for (auto& [place, access] : data.queue)
            if (!access.started) make_ready(access);
        admit(data, out);
    }
}

void HomeAgent::end_write(Data& data, const Message& message, std::vector<Message>& out) {
    // What was got exclusively may have been written in part.
    const Range& range = message.range.range;
    Access* const ended = started_at(data, range);
    if (ended == nullptr || ended->request.from != message.from || ended->request.access != message.access)
        return;
    if (message.kind == MessageKind::kWriteDone) {
        data.versions.written(range, ended->slots, message.tag, message.readers, ended->known_dead);
        if (message.keeps_copy) add_sharer(data, range, message.from);
        if (message.tag) answer_tags(data, *message.tag, range, out);
    }
    take_out(data, *ended);
    admit(data, out);
}

void HomeAgent::await_tag(Data& data, const Message& request, std::vector<Message>& out) {
    if (!request.tag) return;
    const auto found = data.versions.find(request.range.range, request.tag);
    if (!found) return void(data.tag_requests.add(waiting_place(*request.tag, request), request));
    out.push_back(answer(MessageKind::kTagReached, request));
    out.back().readers = found->counted ? 1 : 0;
}

void HomeAgent::answer_tags(Data& data, Tag tag, const Range& written, std::vector<Message>& out) const {
    data.tag_requests.for_each_group(tag, written, [&](auto begin, auto end) {
        const auto found = data.versions.find(begin->second.range.range, tag);
        while (found && begin != end) {
            out.push_back(answer(MessageKind::kTagReached, begin->second));
            out.back().readers = found->counted ? 1 : 0;
            begin = data.tag_requests.erase(begin);
        }
        return false;
    });
}

bool HomeAgent::answer_reader(const Data& data, const Message& request, std::vector<Message>& out) const {
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
}

void HomeAgent::answer_readers(Data& data, const Range& range, std::vector<Message>& out) const {
    data.readers_requests.for_each_group(0, range, [&](auto begin, auto end) {
        while (begin != end)
            begin = answer_reader(data, begin->second, out) ? data.readers_requests.erase(begin)
                                                            : std::next(begin);
        return false;
    });
}

Message HomeAgent::answer(MessageKind kind, const Message& request) const {
    return {kind, self_, request.from, request.access, request.range, request.tag, false};
}

std::set<Rank> HomeAgent::sharers(const GlobalRange& range) const {
    std::set<Rank> all;
    const auto data = data_.find(range.data);
    if (data == data_.end()) return all;
    const auto [first, last] = data->second.sharers.equal_range(interval_of(range.range));
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
