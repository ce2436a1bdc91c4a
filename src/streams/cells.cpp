#include "streams/cells.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::streams {
namespace {

/// What lies in cells at the end; empty: nothing.
template <class Cells, class CellOf>
std::string left_in(const Cells& cells, const CellOf& cell_of) {
    size_t records = 0;
    for (const auto& entry : cells) records += cell_of(entry).filled();
    return records == 0 ? ""
                        : fmt::format("{} records came into {} synchrocells that were not filled", records,
                                      cells.size());
}

}  // namespace

void refuse_another_replica(size_t count) {
    throw Error(ErrorCode::kLimit, fmt::format("there are {} replicas already", count));
}

std::vector<LabelSet> sets_of(const std::vector<Pattern>& patterns) {
    std::vector<LabelSet> sets;
    for (const Pattern& pattern : patterns) sets.emplace_back(pattern.variant);
    return sets;
}

bool matches_any(const std::vector<Pattern>& patterns, const std::vector<LabelSet>& sets,
                 const Record& record) {
    for (size_t i = 0; i < patterns.size(); ++i)
        if (matches(patterns[i], sets[i], record)) return true;
    return false;
}

bool Cell::take(const std::vector<Pattern>& patterns, const std::vector<LabelSet>& sets,
                const Record& record) {
    std::vector<size_t> matching;  // all guards first: where one throws, nothing was kept
    for (size_t i = 0; i < slots_.size(); ++i)
        if (!slots_[i] && matches(patterns[i], sets[i], record)) matching.push_back(i);
    for (const size_t i : matching) {
        slots_[i] = record;
        slots_[i]->turn = {};  // it waits for others: its turn is over
        ++filled_;
    }
    return !matching.empty();
}

Record Cell::merged(const std::vector<LabelSet>& sets, TurnReference turn) {
    Record merged = std::move(*slots_[0]);
    for (size_t i = 1; i < slots_.size(); ++i)
        for (const Label label :
             sets[i].labels())  // what a pattern names wins over what else the first one has
            label.kind() == LabelKind::kField ? merged.set(label, slots_[i]->field(label))
                                              : merged.set(label, slots_[i]->tag(label));
    merged.turn = std::move(turn);
    return merged;
}

ZipperPart::ZipperPart(Plant& plant, const Topology& star, const Topology& cell, Inlet& exit,
                       const Path& path)
    : plant_(plant),
      star_(star),
      cell_(cell),
      exit_(exit),
      path_(path),
      leaving_(sets_of(star.patterns)),
      sets_(sets_of(cell.patterns)) {
    plant.note_cell(path, [this] {
        const std::lock_guard guard(mutex_);
        return left_in(cells_, [](const Cell& one) -> const Cell& { return one; });
    });
}

void ZipperPart::take(Record&& record, Flow& flow) {
    try {
        if (!matches_any(star_.patterns, leaving_, record) && !through_cells(record)) return;
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    flow.pass(exit_, std::move(record));
}

Renewable::Has ZipperPart::has() {
    const std::lock_guard guard(mutex_);
    return cells_.empty() ? Has::kNothing : Has::kRecords;
}

Error ZipperPart::passes_for_ever(const Record& record, const char* why) const {
    return Error(
        ErrorCode::kLimit,
        fmt::format("{} passes through one synchrocell after the other for ever: {}, and it is not {}",
                    record.text(), why, text_of(leaving_)));
}

bool ZipperPart::through_cells(Record& record) {
    const std::lock_guard guard(mutex_);
    for (auto cell = cells_.begin();;) {
        const bool is_new = cell == cells_.end();
        if (is_new) {
            if (cells_.size() >= plant_.options.most_stages)
                throw Error(ErrorCode::kLimit,
                            fmt::format("{} synchrocells wait for records, and there may be "
                                        "no more",
                                        cells_.size()));
            cell = cells_.emplace(cell, sets_.size());
        }
        bool kept = false;
        try {
            kept = cell->take(cell_.patterns, sets_, record);
        } catch (...) {
            if (is_new) cells_.erase(cell);
            throw;
        }
        if (!kept && is_new) {
            cells_.erase(cell);
            throw passes_for_ever(record, "none takes it");
        }
        if (kept && !cell->full()) return false;
        if (kept) {
            record = cell->merged(sets_, std::move(record.turn));
            cell = cells_.erase(cell);
            if (matches_any(star_.patterns, leaving_, record)) return true;
            if (is_new) throw passes_for_ever(record, "each gives it back as it is");
        } else {
            ++cell;
        }
    }
}

JoinPart::JoinPart(Plant& plant, const Topology& split, const Topology& cell, Inlet& exit, const Path& path)
    : plant_(plant), split_(split), cell_(cell), exit_(exit), path_(path), sets_(sets_of(cell.patterns)) {
    plant.note_cell(path, [this] {
        const std::lock_guard guard(mutex_);
        return left_in(cells_, [](const auto& entry) -> const Cell& { return entry.second; });
    });
}

void JoinPart::take(Record&& record, Flow& flow) {
    if (!record.has(split_.tag)) {
        LabelSet wanted;
        wanted.add(split_.tag);
        plant_.fail(std::move(record), path_, no_way(record, {wanted}));
        return;
    }
    try {
        if (!through_cell(record.tag(split_.tag), record)) return;
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    flow.pass(exit_, std::move(record));
}

bool JoinPart::through_cell(int value, Record& record) {
    const std::lock_guard guard(mutex_);
    if (fired_.contains(value)) return true;
    const auto known = cells_.find(value);
    if (known == cells_.end()) {
        if (cells_.size() >= plant_.options.most_stages) refuse_another_replica(cells_.size());
        Cell cell(sets_.size());
        if (!cell.take(cell_.patterns, sets_, record)) return true;
        if (!cell.full()) {
            cells_.emplace(value, std::move(cell));
            return false;
        }
        record = cell.merged(sets_, std::move(record.turn));
    } else {
        Cell& cell = known->second;
        if (!cell.take(cell_.patterns, sets_, record)) return true;
        if (!cell.full()) return false;
        record = cell.merged(sets_, std::move(record.turn));
        cells_.erase(known);
    }
    fired_.add(value);
    return true;
}

Renewable::Has JoinPart::has() {
    const std::lock_guard guard(mutex_);
    return cells_.empty() && fired_.count() == 0 ? Has::kNothing : Has::kRecords;
}

void ValueRanges::add(int value) {
    int first = value, last = value;
    const auto after = ranges_.upper_bound(value);
    if (after != ranges_.end() && int64_t{after->first} == int64_t{value} + 1) last = after->second;
    if (after != ranges_.begin())
        if (const auto before = std::prev(after); int64_t{before->second} + 1 >= value) {
            if (before->second >= value) return;
            first = before->first;
        }
    if (last != value) ranges_.erase(after);
    ranges_.insert_or_assign(first, last);
    ++count_;
}

void ValueRanges::remove(int value) {
    const auto range = range_of(value);
    if (range == ranges_.end()) return;
    const auto [first, last] = *range;
    if (value < last) ranges_.emplace(value + 1, last);
    if (first < value)
        ranges_[first] = value - 1;
    else
        ranges_.erase(range);
    --count_;
}

bool ValueRanges::contains(int value) const {
    return range_of(value) != ranges_.end();
}

int ValueRanges::last_of(int value) const {
    return range_of(value)->second;
}

std::map<int, int>::const_iterator ValueRanges::range_of(int value) const {
    const auto after = ranges_.upper_bound(value);
    if (after == ranges_.begin()) return ranges_.end();
    const auto range = std::prev(after);
    return range->second >= value ? range : ranges_.end();
}

}  // namespace heddle::streams
