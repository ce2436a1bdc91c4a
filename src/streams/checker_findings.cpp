// What the checker says: each hole with its places and what to do about it.
#include <fmt/format.h>

#include <algorithm>

#include "streams/checker.hpp"

namespace heddle::streams {
namespace {

/// The label that `type` lacks most simply: those of the set that needs least.
LabelSet least_missing(const std::vector<LabelSet>& wanted, const LabelSet& type) {
    const LabelSet* nearest = nullptr;
    size_t least = 0;
    for (const LabelSet& set : wanted) {
        const size_t missing = set.without(type).labels().size();
        if (nearest != nullptr && missing >= least) continue;
        nearest = &set;
        least = missing;
    }
    return nearest == nullptr ? LabelSet() : nearest->without(type);
}

/// Binding tags of the type that the set has not: they are never ignored.
std::string foreign_tags(const LabelSet& set, const LabelSet& type) {
    std::string text;
    const LabelSet foreign = type.without(set);
    for (const Label label : foreign.labels())
        if (label.kind() == LabelKind::kBindingTag)
            text += fmt::format("{}{}", text.empty() ? "" : ", ", label.text());
    return text;
}

Place place_of(const Topology& part, const Pattern& pattern) {
    return pattern.variant.empty() ? part.place : pattern.variant[0].place;
}

/// Where a signature names the label in what the net gives.
Place promise_of(const NetDefinition& net, Label label) {
    for (const Map& map : net.signature)
        for (const Variant& variant : map.output)
            for (const Entry& entry : variant)
                if (entry.label == label) return entry.place;
    return net.place;
}

}  // namespace

void Checker::find(Finding finding) {
    if (quiet_) return;
    const std::pair place(finding.place.source, finding.place.offset);
    findings_.emplace(place, std::move(finding));
}

void Checker::explain_missing(Finding& finding, const LabelSet& missing, const Traced& type) const {
    LabelSet never;
    for (const Label label : missing.labels()) {
        const auto lost = type.lost.find(label);
        if (lost == type.lost.end()) {
            never.add(label);
            continue;
        }
        finding.notes.push_back(
            {lost->second.place, fmt::format("{} is lost here: {}", label.text(), lost->second.message)});
        if (finding.fix.empty()) finding.fix = lost->second.fix;
    }
    if (never.labels().empty()) return;
    finding.message +=
        fmt::format("; no part before makes {}, and no signature around brings it", never.text());
    if (finding.fix.empty())
        finding.fix = fmt::format("make {} in a part before, or name it in the signature of a net around",
                                  never.text());
}

std::optional<Checker::Traced> Checker::saved(const LabelSet& wanted, const Traced& type) const {
    if (!hopeful_ || closed_ > 0) return {};
    const LabelSet missing = wanted.without(type.labels);
    const bool is_lost =
        std::ranges::any_of(missing.labels(), [&](Label label) { return type.lost.contains(label); });
    Traced having = type;
    having.labels.add(missing);
    if (is_lost || wanted.fit(having.labels) < 0) return {};
    return having;
}

void Checker::find_missing(Place place, const std::string& what, const std::vector<LabelSet>& wanted,
                           const Traced& type) {
    Finding finding{Hole::kMissingLabel,
                    place,
                    wanted.empty()
                        ? fmt::format("{} takes no record, and gets {}", what, type.labels.text())
                        : fmt::format("{} needs {}, and gets {}", what, text_of(wanted), type.labels.text()),
                    {},
                    {}};
    const LabelSet missing = least_missing(wanted, type.labels);
    if (missing.labels().empty() && !wanted.empty()) {
        const std::string foreign = foreign_tags(wanted[0], type.labels);
        finding.message += fmt::format("; a binding tag fits only where it is named, and {} is not", foreign);
        finding.fix = fmt::format("name {} there, or take it away before", foreign);
    }
    if (wanted.empty())
        finding.fix = "give it a branch of its own, beside one that takes the records: what | []";
    explain_missing(finding, missing, type);
    finding.sure = closed_ > 0 || missing.labels().empty() ||
                   std::all_of(wanted.begin(), wanted.end(), [&](const LabelSet& set) {
                       const LabelSet lacking = set.without(type.labels);
                       return std::any_of(lacking.labels().begin(), lacking.labels().end(),
                                          [&](Label label) { return type.lost.contains(label); });
                   });
    find(std::move(finding));
}

bool Checker::find_foreign_fields(const Topology& filter, const Traced& type) {
    const LabelSet pattern(filter.patterns[0].variant);
    bool may_have = filter.actions.empty();  // which of them is taken the guards say
    for (const GuardedAction& action : filter.actions) {
        bool lacks = false;
        for (const OutputRecord& output : action.outputs)
            for (const Assignment& assignment : output) {
                const Label from = assignment.from;
                if (from.kind() != LabelKind::kField || pattern.has(from)) continue;
                LabelSet named = pattern;
                named.add(from);
                Finding finding{
                    Hole::kMissingLabel,
                    assignment.place,
                    fmt::format("the pattern of this filter has no field {} to take it from", from.text()),
                    {},
                    {}};
                finding.fix = fmt::format("name it in the pattern: {}", named.text());
                finding.sure = !type.labels.has(from) && (closed_ > 0 || type.lost.contains(from));
                lacks |= finding.sure;
                find(std::move(finding));
            }
        may_have |= !lacks;
    }
    return may_have;
}

void Checker::check_promise(const NetDefinition& net, const TypeMaps& maps, const Traced& made) {
    // What was found out is no promise.
    if (std::ranges::any_of(net.signature, &Map::infer)) return;
    std::vector<LabelSet> promised;
    for (const TypeMap& map : maps)
        for (const LabelSet& output : map.outputs) add_type(promised, output);
    const bool kept = std::any_of(promised.begin(), promised.end(), [&](const LabelSet& output) {
        return output.without(made.labels).labels().empty();
    });
    if (kept) return;
    const LabelSet missing = least_missing(promised, made.labels);
    Finding finding{Hole::kUndelivered,
                    missing.labels().empty() ? net.place : promise_of(net, missing.labels()[0]),
                    fmt::format("the net \"{}\" promises {} for {}, and makes {}", net.name,
                                promised.empty() ? "nothing" : text_of(promised), text_of(inputs_of(maps)),
                                made.labels.text()),
                    {},
                    {},
                    true};
    for (const Label label : missing.labels())
        if (const auto lost = made.lost.find(label); lost != made.lost.end())
            finding.notes.push_back(
                {lost->second.place, fmt::format("{} is lost here: {}", label.text(), lost->second.message)});
    finding.fix = promised.empty()
                      ? fmt::format("write what it gives into the signature: -> {}", made.labels.text())
                      : fmt::format("make {} in the net, or take it out of the signature", missing.text());
    find(std::move(finding));
}

void Checker::find_untaken() {
    for (const auto& [part, visits] : visits_) {
        // Programs name in a feedback what goes in, too: one pattern that is used is enough.
        if (part->kind == TopologyKind::kFeedback && !visits.taken.empty()) continue;
        const size_t ways = part->kind == TopologyKind::kChoice ? part->parts.size() : part->patterns.size();
        for (size_t i = 0; i < ways; ++i) {
            if (visits.taken.contains(i)) continue;
            if (part->kind != TopologyKind::kChoice)
                find_dead_exit(*part, i, visits);
            else if (!visits.tied.contains(i) && !typing_.of(part->parts[i]).empty())
                find_dead_branch(*part, i, visits);
        }
    }
}

void Checker::find_dead_branch(const Topology& part, size_t branch, const Visits& visits) {
    const Topology& dead = part.parts[branch];
    const std::vector<LabelSet> wanted = inputs_of(typing_.of(dead));
    Finding finding{Hole::kDeadBranch, dead.place, "", {}, {}};
    if (const auto beaten = visits.beaten.find(branch); beaten != visits.beaten.end()) {
        finding.message = fmt::format(
            "no record ever takes this branch: what fits {} fits another one better", text_of(wanted));
        finding.notes.push_back({part.parts[beaten->second].place, "this is taken instead"});
        finding.fix = "let this branch need a label that the other one does not, or take it away";
    } else {
        finding.message = fmt::format(
            "no record ever takes this branch: it needs {}, which none that comes has", text_of(wanted));
        const auto lacking = [&](const Traced& type) { return least_missing(wanted, type.labels); };
        const auto nearest =
            std::min_element(visits.came.begin(), visits.came.end(), [&](const Traced& a, const Traced& b) {
                return lacking(a).labels().size() < lacking(b).labels().size();
            });
        if (nearest != visits.came.end()) explain_missing(finding, lacking(*nearest), *nearest);
    }
    find(std::move(finding));
}

void Checker::find_dead_exit(const Topology& part, size_t pattern, const Visits& visits) {
    const LabelSet wanted(part.patterns[pattern].variant);
    Finding finding{
        Hole::kDeadExit,
        place_of(part, part.patterns[pattern]),
        fmt::format("no record ever matches {}: what comes here never has all of it", wanted.text()),
        {},
        {},
        visits.closed};
    if (!visits.came.empty()) {
        const Traced& last = visits.came.back();
        const LabelSet missing = wanted.without(last.labels);
        for (const Label label : missing.labels())
            if (const auto lost = last.lost.find(label); lost != last.lost.end())
                finding.notes.push_back({lost->second.place, fmt::format("{} is lost here: {}", label.text(),
                                                                         lost->second.message)});
        finding.fix =
            fmt::format("make {} inside of what is repeated, or wait for what comes, such as {}",
                        missing.labels().empty() ? wanted.text() : missing.text(), last.labels.text());
    }
    find(std::move(finding));
}

bool Checker::works(const NetDefinition& net) {
    Types inputs;
    const bool is_inferred = std::ranges::any_of(net.signature, &Map::infer);
    for (const TypeMap& map : typing_.of(net)) {
        if (map.outputs.empty() && !is_inferred) return true;
        add(inputs, {map.input, {}});
    }
    ++closed_;
    const bool gives = !send(*net.body, inputs).empty();
    --closed_;
    return gives;
}

void Checker::find_working_nets() {
    // A net that uses others works where those work: from the innermost on, until no more are found.
    quiet_ = true;
    for (bool more = true; more;) {
        more = false;
        for (const NetDefinition* net : nets_)
            if (!working_.contains(net) && works(*net)) more = working_.insert(net).second;
    }
    quiet_ = false;
}

void Checker::find_endless_nets() {
    std::vector<const NetDefinition*> endless;
    quiet_ = true;
    for (const NetDefinition* net : nets_) {
        if (!typing_.is_recursive(*net) || working_.contains(net)) continue;
        // It would work if it did not wait for itself.
        working_.insert(net);
        // Where it was inferred that nothing comes out, there is no way but into itself.
        const bool gives_nothing =
            std::ranges::any_of(net->signature, &Map::infer) &&
            std::ranges::all_of(typing_.of(*net), [](const TypeMap& map) { return map.outputs.empty(); });
        if (gives_nothing || works(*net)) endless.push_back(net);
        working_.erase(net);
    }
    quiet_ = false;
    for (const NetDefinition* net : endless)
        find({Hole::kEndless,
              net->place,
              fmt::format("no record ever leaves the net \"{}\": each way through it leads into itself again",
                          net->name),
              {},
              "give it a branch that does not use the net, for the records that are done",
              true});
}

void Checker::find_what_never_works() {
    const NetDefinition& main = program_.main();
    const TypeMaps& maps = typing_.of(main);
    const bool gives =
        std::any_of(maps.begin(), maps.end(), [](const TypeMap& map) { return !map.outputs.empty(); }) ||
        std::ranges::any_of(main.signature, [](const Map& map) { return map.infer || !map.output.empty(); });
    if (!gives || !main.body) return;
    quiet_ = hopeful_ = true;
    Types types;
    for (const LabelSet& type : given_) add(types, {type, {}});
    const bool works = !through_net(main, types, main.place).empty() || !initial(*main.body).empty();
    quiet_ = hopeful_ = false;
    if (works) return;
    for (const auto& [place, finding] : findings_)
        if (never_works_ == nullptr && finding.sure &&
            (finding.hole == Hole::kMissingLabel || finding.hole == Hole::kEndless ||
             finding.hole == Hole::kDeadExit || finding.hole == Hole::kUndefined))
            never_works_ = &finding;
}

}  // namespace heddle::streams
