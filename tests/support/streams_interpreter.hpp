// What a network without synchrocells makes of a record, one step after the other: slow, and plainly S-Net's
// rules (docs/STREAMS.md).
#pragma once

#include <functional>
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
    std::vector<streams::Record> outcome(const streams::NetDefinition& net, const streams::Record& record) {
        if (!net.has_signature) return outcome(*net.body, record);
        const streams::LabelSet* best = best_fit(typing_.of(net), record);
        if (best == nullptr) return failed();
        streams::Record inside, aside;
        for (const auto& [label, value] : record.tags())
            (best->has(label) ? inside : aside).set(label, value);
        std::vector<streams::Record> out = outcome(*net.body, inside);
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
    Records each(const streams::Topology& part, const Records& records) {
        Records all;
        for (const streams::Record& record : records)
            for (streams::Record& one : outcome(part, record)) all.push_back(std::move(one));
        return all;
    }
    /// Through the part, and again where it matches (`back`) or does not.
    Records repeated(const streams::Topology& part, const streams::Record& record, bool back) {
        Records all;
        for (const streams::Record& one : outcome(part.parts[0], record)) {
            if (matches_one(part.patterns, one) != back) {
                all.push_back(one);
                continue;
            }
            for (streams::Record& later : repeated(part, one, back)) all.push_back(std::move(later));
        }
        return all;
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

    Records outcome(const streams::Topology& part, const streams::Record& record) {
        switch (part.kind) {
            case streams::TopologyKind::kBox:
                return boxed(*part.box, record);
            case streams::TopologyKind::kNet:
                return outcome(*part.net, record);
            case streams::TopologyKind::kFilter:
                return filtered(part, record);
            case streams::TopologyKind::kSerial: {
                Records all{record};
                for (const streams::Topology& step : part.parts) all = each(step, all);
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
                return best == nullptr ? failed() : outcome(*best, record);
            }
            case streams::TopologyKind::kStar:
                return matches_one(part.patterns, record) ? Records{record} : repeated(part, record, false);
            case streams::TopologyKind::kFeedback:
                return repeated(part, record, true);
            case streams::TopologyKind::kSplit:
                return record.has(part.tag) ? outcome(part.parts[0], record) : failed();
            default:
                return outcome(part.parts[0], record);
        }
    }

    const streams::Typing typing_;
    const Box box_;
    int failures_ = 0;
};

}  // namespace heddle::test
