#include "memory/versions.hpp"

#include <algorithm>

namespace heddle::memory {
namespace {

void add(std::vector<Slice>& slices, const Range& range, uint32_t slot) {
    if (!slices.empty() && slices.back().slot == slot && slices.back().range.end() == range.offset)
        slices.back().range.size += range.size;
    else
        slices.push_back({range, slot});
}

void leave_out_first_slot(std::vector<Slice>& slices) {
    if (slices.size() == 1 && slices.front().slot == 0) slices.clear();
}

}  // namespace

template <class Function>
void Versions::for_each_part(const Range& range, Function function) const {
    static const State kNothing;
    uint64_t at = range.offset;
    const auto [first, last] = states_.equal_range(interval_of(range));
    for (auto one = first; one != last; ++one) {
        const uint64_t from = std::max(one->first.lower(), range.offset);
        const uint64_t to = std::min(one->first.upper(), range.end());
        if (from > at) function(Range{at, from - at}, kNothing);
        function(Range{from, to - from}, *one->second);
        at = to;
    }
    if (at < range.end()) function(Range{at, range.end() - at}, kNothing);
}

template <class Function>
void Versions::change(const Range& range, Function function) {
    std::vector<std::pair<Range, State>> changed;
    for_each_part(range, [&](const Range& part, const State& state) {
        State now = state;
        function(now);
        if (now != state) changed.emplace_back(part, std::move(now));
    });
    for (const auto& [part, state] : changed) {
        if (state == State{})
            states_ -= interval_of(part);
        else
            states_.set({interval_of(part), state});
    }
}

std::optional<Versions::Found> Versions::find(const Range& range, std::optional<Tag> tag) const {
    Found found;
    if (!tag && states_.empty()) return found;
    bool all = true;
    for_each_part(range, [&](const Range& part, const State& state) {
        if (!tag || (state.has_tag && state.newest.tag == *tag)) {
            if (tag) found.counted |= state.is_unread();
            return add(found.slices, part, state.newest.slot);
        }
        const auto version = std::ranges::find(state.earlier, *tag, &Version::tag);
        if (version == state.earlier.end()) {
            all = false;
            return;
        }
        found.earlier = found.counted = true;
        add(found.slices, part, version->slot);
    });
    if (!all) return {};
    leave_out_first_slot(found.slices);
    return found;
}

bool Versions::may_write(const Range& range, uint32_t retain, std::optional<Tag> tag) const {
    bool may = true;
    for_each_part(range, [&](const Range&, const State& state) {
        if (state.earlier.size() + (state.is_unread() ? 1 : 0) > retain) may = false;
        if (!tag) return;
        if (state.is_unread() && state.newest.tag == *tag) may = false;
        if (std::ranges::find(state.earlier, *tag, &Version::tag) != state.earlier.end()) may = false;
    });
    return may;
}

std::vector<Slice> Versions::slots_to_write(const Range& range) const {
    std::vector<Slice> slices;
    if (states_.empty()) return slices;
    for_each_part(range, [&](const Range& part, const State& state) {
        if (!state.is_unread()) return add(slices, part, state.newest.slot);
        const auto is_taken = [&](uint32_t slot) {
            return slot == state.newest.slot ||
                   std::ranges::find(state.earlier, slot, &Version::slot) != state.earlier.end();
        };
        uint32_t slot = 0;
        while (is_taken(slot)) ++slot;
        add(slices, part, slot);
    });
    leave_out_first_slot(slices);
    return slices;
}

void Versions::written(const Range& range, const std::vector<Slice>& slots, std::optional<Tag> tag,
                       uint32_t readers, const std::set<Reader>& known_dead) {
    const auto write = [&](const Slice& slice) {
        change(slice.range, [&](State& state) {
            if (state.is_unread() && state.newest.slot != slice.slot)
                state.earlier.push_back(std::move(state.newest));
            state.has_tag = tag.has_value();
            state.newest = {tag.value_or(0), tag ? readers : 0, slice.slot, known_dead};
        });
        if (readers == 0) return;
        const auto [first, last] = readers_died_.equal_range(interval_of(slice.range));
        for (auto one = first; one != last; ++one) {
            const ByteInterval both = one->first & interval_of(slice.range);
            const auto died = static_cast<uint32_t>(std::ranges::count_if(
                one->second, [&](const Reader& reader) { return !known_dead.contains(reader); }));
            change({both.lower(), both.upper() - both.lower()},
                   [&](State& state) { state.newest.readers -= std::min(state.newest.readers, died); });
        }
    };
    if (slots.empty()) return write({range, 0});
    for (const Slice& slice : slots)
        if (slice.range.overlaps(range)) write({slice.range & range, slice.slot});
}

void Versions::spoiled(const Range& range, const std::vector<Slice>& slots) {
    const auto spoil = [&](const Slice& slice) {
        change(slice.range, [&](State& state) {
            if (state.newest.slot != slice.slot) return;
            state.has_tag = false;
            state.newest = {.slot = slice.slot};
        });
    };
    if (slots.empty()) return spoil({range, 0});
    for (const Slice& slice : slots) spoil(slice);
}

void Versions::has_read(const Range& range, Tag tag, const Reader& reader) {
    const auto note = [&](Version& version) {
        if (version.tag != tag || version.readers == 0) return;
        --version.readers;
        version.read_by.insert(reader);
    };
    change(range, [&](State& state) {
        if (state.has_tag) note(state.newest);
        std::ranges::for_each(state.earlier, note);
        std::erase_if(state.earlier, [](const Version& version) { return version.readers == 0; });
    });
}

void Versions::reader_died(const Range& range, const Reader& reader) {
    const auto note = [&](Version& version) {
        if (version.readers > 0 && !version.read_by.contains(reader)) --version.readers;
    };
    change(range, [&](State& state) {
        if (state.has_tag) note(state.newest);
        std::ranges::for_each(state.earlier, note);
        std::erase_if(state.earlier, [](const Version& version) { return version.readers == 0; });
    });
    readers_died_ += std::make_pair(interval_of(range), std::set<Reader>{reader});
}

std::set<Versions::Reader> Versions::lost_readers(const Range& range) const {
    std::set<Reader> all;
    const auto [first, last] = readers_died_.equal_range(interval_of(range));
    for (auto one = first; one != last; ++one) all.insert(one->second.begin(), one->second.end());
    return all;
}

void Versions::told_of(const Range& range, const Reader& reader) {
    readers_died_ -= std::make_pair(interval_of(range), std::set<Reader>{reader});
}

}  // namespace heddle::memory
