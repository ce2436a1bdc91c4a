// What a network makes of one record after the other, one step after the other: slow, and plainly S-Net's
// rules (docs/STREAMS.md). Each synchrocell that a record comes to is kept by its place for ever.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "streams/matching.hpp"
#include "streams/typing.hpp"

namespace heddle::test {

class StreamsInterpreter {
  public:
    /// What a box makes of its arguments: variant 1 of the given values.
    using Box =
        std::function<std::vector<std::vector<int>>(const std::string& name, const std::vector<int>&)>;

    StreamsInterpreter(const streams::Program& program, Box box) : typing_(program), box_(std::move(box)) {}

    /// In the order in which an ordered network gives them.
    std::vector<streams::Record> outcome(const streams::NetDefinition& net, const streams::Record& record,
                                         const std::string& place = "") {
        if (!net.has_signature) return outcome(*net.body, record, place);
        const streams::LabelSet* best = best_fit(typing_.of(net), record);
        if (best == nullptr) return failed();
        streams::Record inside, aside;
        for (const auto& [label, value] : record.tags())
            (best->has(label) ? inside : aside).set(label, value);
        std::vector<streams::Record> out = outcome(*net.body, inside, place);
        for (streams::Record& one : out) one.inherit(aside);
        return out;
    }
    [[nodiscard]] int failures() const { return failures_; }

  private:
    using Records = std::vector<streams::Record>;

    Records failed() {
        ++failures_;
        return {};
    }
    static const streams::LabelSet* best_fit(const streams::TypeMaps& maps, const streams::Record& record) {
        const streams::LabelSet* best = nullptr;
        for (const streams::TypeMap& map : maps)
            if (map.input.fit(record) >= 0 && (best == nullptr || map.input.fit(record) > best->fit(record)))
                best = &map.input;
        return best;
    }
    static bool matches_one(const std::vector<streams::Pattern>& patterns, const streams::Record& record) {
        for (const streams::Pattern& pattern : patterns)
            if (streams::matches(pattern, streams::LabelSet(pattern.variant), record)) return true;
        return false;
    }
    Records each(const streams::Topology& part, const Records& records, const std::string& place) {
        Records all;
        for (const streams::Record& record : records)
            for (streams::Record& one : outcome(part, record, place)) all.push_back(std::move(one));
        return all;
    }
    /// Through the part, and again where it matches (`back`) or does not: where not, through the next
    /// replica.
    Records repeated(const streams::Topology& part, const streams::Record& record, bool back,
                     const std::string& place, int stage = 0) {
        Records all;
        for (const streams::Record& one :
             outcome(part.parts[0], record, fmt::format("{}/{}", place, back ? 0 : stage))) {
            if (matches_one(part.patterns, one) != back) {
                all.push_back(one);
                continue;
            }
            for (streams::Record& later : repeated(part, one, back, place, stage + 1))
                all.push_back(std::move(later));
        }
        return all;
    }

    struct Cell {
        std::vector<std::optional<streams::Record>> slots;
        bool fired = false;
    };
    Records synchronized(const streams::Topology& part, const streams::Record& record,
                         const std::string& place) {
        Cell& cell = cells_[place];
        if (cell.fired) return {record};
        cell.slots.resize(part.patterns.size());
        bool kept = false;
        for (size_t i = 0; i < cell.slots.size(); ++i)
            if (!cell.slots[i] &&
                streams::matches(part.patterns[i], streams::LabelSet(part.patterns[i].variant), record)) {
                cell.slots[i] = record;
                kept = true;
            }
        if (!kept) return {record};
        if (!std::all_of(cell.slots.begin(), cell.slots.end(), [](const auto& slot) { return bool(slot); }))
            return {};
        cell.fired = true;
        streams::Record merged = *cell.slots[0];
        for (size_t i = 1; i < cell.slots.size(); ++i) {
            const streams::LabelSet named(part.patterns[i].variant);
            for (const streams::Label label : named.labels()) merged.set(label, cell.slots[i]->tag(label));
        }
        return {merged};
    }

    Records filtered(const streams::Topology& part, const streams::Record& record) {
        if (part.patterns.empty()) return {record};
        const streams::LabelSet pattern(part.patterns[0].variant);
        if (pattern.fit(record) < 0) return failed();
        Records all;
        for (const streams::GuardedAction& action : part.actions) {
            if (action.guard && streams::evaluate(*action.guard, streams::tags_of(record)) == 0) continue;
            for (const streams::OutputRecord& output : action.outputs) {
                streams::Record made;
                for (const streams::Assignment& to : output)
                    made.set(to.label, to.value ? streams::evaluate(*to.value, streams::tags_of(record))
                                       : pattern.has(to.from) ? record.tag(to.from)
                                                              : 0);
                streams::Record rest = record;
                for (const streams::Label label : pattern.labels()) rest.remove(label);
                made.inherit(rest);
                all.push_back(std::move(made));
            }
            break;
        }
        return all;
    }

    Records boxed(const streams::BoxDefinition& box, const streams::Record& record) {
        if (streams::LabelSet(box.input).fit(record) < 0) return failed();
        std::vector<int> arguments;
        streams::Record rest = record;
        for (const streams::Entry& entry : box.input) {
            arguments.push_back(record.tag(entry.label));
            rest.remove(entry.label);
        }
        Records all;
        for (const std::vector<int>& values : box_(box.name, arguments)) {
            streams::Record made;
            for (size_t i = 0; i < values.size(); ++i) made.set(box.outputs[0][i].label, values[i]);
            made.inherit(rest);
            all.push_back(std::move(made));
        }
        return all;
    }

    Records outcome(const streams::Topology& part, const streams::Record& record, const std::string& place) {
        switch (part.kind) {
            case streams::TopologyKind::kBox:
                return boxed(*part.box, record);
            case streams::TopologyKind::kNet:
                return outcome(*part.net, record, place + "/" + part.net->name);
            case streams::TopologyKind::kFilter:
                return filtered(part, record);
            case streams::TopologyKind::kSerial: {
                Records all{record};
                for (size_t i = 0; i < part.parts.size(); ++i)
                    all = each(part.parts[i], all, fmt::format("{}/{}", place, i));
                return all;
            }
            case streams::TopologyKind::kChoice: {
                const streams::Topology* best = nullptr;
                int most = -1;
                for (const streams::Topology& branch : part.parts)
                    if (const streams::LabelSet* fit = best_fit(typing_.of(branch), record);
                        fit != nullptr && fit->fit(record) > most) {
                        most = fit->fit(record);
                        best = &branch;
                    }
                return best == nullptr
                           ? failed()
                           : outcome(*best, record, fmt::format("{}/{}", place, best - part.parts.data()));
            }
            case streams::TopologyKind::kStar:
                return matches_one(part.patterns, record) ? Records{record}
                                                          : repeated(part, record, false, place);
            case streams::TopologyKind::kFeedback:
                return repeated(part, record, true, place);
            case streams::TopologyKind::kSplit:
                return record.has(part.tag)
                           ? outcome(part.parts[0], record, fmt::format("{}/{}", place, record.tag(part.tag)))
                           : failed();
            case streams::TopologyKind::kSync:
                return synchronized(part, record, place);
            default:
                return outcome(part.parts[0], record, place);
        }
    }

    const streams::Typing typing_;
    const Box box_;
    int failures_ = 0;
    std::map<std::string, Cell> cells_;
};

}  // namespace heddle::test
