#include "streams/typing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace heddle::streams {
namespace {

std::vector<LabelSet> sets_of(const Type& type) {
    std::vector<LabelSet> sets;
    for (const Variant& variant : type) sets.emplace_back(variant);
    return sets;
}

LabelSet joined(LabelSet a, const LabelSet& b) {
    a.add(b);
    return a;
}

/// The map whose input fits best; ties go to the first. Null: none fits.
const TypeMap* best(const TypeMaps& maps, const LabelSet& type) {
    const TypeMap* found = nullptr;
    for (const TypeMap& map : maps)
        if (map.input.fit(type) >= 0 && (found == nullptr || map.input.fit(type) > found->input.fit(type)))
            found = &map;
    return found;
}

TypeMaps box_maps(const BoxDefinition& box) {
    if (box.is_initialiser) return {};  // no record goes there
    TypeMap map{LabelSet(box.input), sets_of(box.outputs)};
    for (const Entry& entry : box.input)
        for (LabelSet& output : map.outputs)
            if (entry.passes) output.add(entry.label);
    return {map};
}

TypeMaps filter_maps(const Topology& part) {
    if (part.patterns.empty()) return {{LabelSet(), {LabelSet()}}};
    TypeMap map{LabelSet(part.patterns[0].variant), {}};
    for (const GuardedAction& action : part.actions)
        for (const OutputRecord& record : action.outputs) {
            LabelSet output;
            for (const Assignment& assignment : record) output.add(assignment.label);
            add_type(map.outputs, std::move(output));
        }
    return {map};
}

TypeMaps sync_maps(const Topology& part) {
    LabelSet all;
    for (const Pattern& pattern : part.patterns) all.add(LabelSet(pattern.variant));
    TypeMaps maps;
    for (const Pattern& pattern : part.patterns) {
        // What comes once it has fired goes through as it is, and is nothing that a later part counts on.
        maps.push_back({LabelSet(pattern.variant), {all}});
    }
    return maps;
}

}  // namespace

void check_number(size_t types, std::string_view what, const Place& place) {
    constexpr size_t kMostTypes = 4096;
    if (types > kMostTypes)
        place.source->fail(place,
                           fmt::format("what {} more than {} types of records: say with the signature of "
                                       "a net around it which of them are meant",
                                       what, kMostTypes));
}

std::vector<LabelSet> inputs_of(const TypeMaps& maps) {
    std::vector<LabelSet> inputs;
    for (const TypeMap& map : maps) inputs.push_back(map.input);
    return inputs;
}

int taken_by(const std::vector<Pattern>& patterns, const LabelSet& type, std::set<size_t>* takers) {
    int most = 0;
    for (size_t i = 0; i < patterns.size(); ++i) {
        if (LabelSet(patterns[i].variant).fit(type) < 0) continue;
        most = std::max(most, patterns[i].guard ? 1 : 2);
        if (takers != nullptr) takers->insert(i);
    }
    return most;
}

void add_type(std::vector<LabelSet>& types, LabelSet type) {
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(std::move(type));
}

void apply(const TypeMap& map, const LabelSet& type, std::vector<LabelSet>& outputs) {
    const LabelSet rest = type.without(map.input);
    for (LabelSet output : map.outputs) {
        for (const Label label : rest.labels())
            if (label.kind() != LabelKind::kBindingTag) output.add(label);
        add_type(outputs, std::move(output));
    }
}

Typing::Typing(const Program& program) {
    infer_all(program.nets);
}

void Typing::infer_all(const std::vector<std::unique_ptr<NetDefinition>>& nets) {
    for (const auto& net : nets) {
        (void)infer(*net);
        infer_all(net->nets);
    }
}

const TypeMaps& Typing::infer(const NetDefinition& net) {
    if (const auto known = nets_.find(&net); known != nets_.end()) {
        if (std::find(open_.begin(), open_.end(), &net) != open_.end()) recursive_[&net] = true;
        return known->second;
    }
    if (std::find(open_.begin(), open_.end(), &net) != open_.end())
        net.place.source->fail(
            net.place,
            fmt::format("the net \"{}\" uses itself and so needs a signature, as in net {} ({{a}} -> "
                        "{{b}}): what it takes cannot be found out",
                        net.name, net.name));
    TypeMaps declared;
    bool infer_output = false;
    for (const Map& map : net.signature) {
        infer_output |= map.infer;
        // Without an input: what the net sends by itself, and no record goes there for it.
        for (const Variant& input : map.input) declared.push_back({LabelSet(input), sets_of(map.output)});
    }
    if (net.has_signature) nets_[&net] = declared;
    open_.push_back(&net);
    const TypeMaps* body = net.body ? &infer(*net.body) : nullptr;
    open_.pop_back();
    if (!net.has_signature) return nets_[&net] = body == nullptr ? TypeMaps{} : *body;
    if (infer_output && body != nullptr)
        for (TypeMap& map : declared) {
            if (!map.outputs.empty()) continue;
            if (const TypeMap* found = best(*body, map.input)) apply(*found, map.input, map.outputs);
            // And what passes a synchrocell, which no map tells of.
            for (LabelSet& output : through(*net.body, map.input)) add_type(map.outputs, std::move(output));
        }
    return nets_[&net] = declared;
}

/// What may come out of a part that all have been inferred for, of a record that has just these labels.
std::vector<LabelSet> Typing::through(const Topology& part, const LabelSet& type) const {
    std::vector<LabelSet> outputs;
    const auto add_all = [&](const Topology& inner, const LabelSet& inside) {
        for (LabelSet& output : through(inner, inside)) add_type(outputs, std::move(output));
        check_number(outputs.size(), "comes out of here may be of", part.place);
    };
    switch (part.kind) {
        case TopologyKind::kSync:
            outputs.push_back(type);
            [[fallthrough]];
        case TopologyKind::kBox:
        case TopologyKind::kFilter:
            if (const TypeMap* map = best(of(part), type)) apply(*map, type, outputs);
            break;
        case TopologyKind::kNet:
            if (!part.net->has_signature && part.net->body)
                add_all(*part.net->body, type);
            else if (const TypeMap* map = best(nets_.at(part.net), type))
                apply(*map, type, outputs);
            break;
        case TopologyKind::kSerial: {
            outputs.push_back(type);
            for (const Topology& step : part.parts)
                for (const LabelSet& inside : std::exchange(outputs, {})) add_all(step, inside);
            break;
        }
        case TopologyKind::kChoice: {
            const Topology* taken = nullptr;
            int most = -1;
            for (const Topology& branch : part.parts)
                if (const TypeMap* map = best(of(branch), type);
                    map != nullptr && map->input.fit(type) > most) {
                    most = map->input.fit(type);
                    taken = &branch;
                }
            if (taken != nullptr) add_all(*taken, type);
            break;
        }
        case TopologyKind::kStar:
        case TopologyKind::kFeedback: {
            const bool is_star = part.kind == TopologyKind::kStar;
            std::vector<LabelSet> seen{type};
            for (size_t i = 0; i < seen.size(); ++i) {
                const LabelSet now = seen[i];
                // A star's records leave where they match, a feedback's go in again; what has just come goes
                // in.
                const int match = taken_by(part.patterns, now);
                const bool is_new = !is_star && i == 0;
                if (!is_new && (is_star ? match > 0 : match < 2)) add_type(outputs, now);
                if (is_new || (is_star ? match < 2 : match > 0))
                    for (LabelSet& made : through(part.parts[0], now)) add_type(seen, std::move(made));
                check_number(seen.size(), "goes round here may be of", part.place);
            }
            break;
        }
        case TopologyKind::kSplit:
            if (type.has(part.tag)) add_all(part.parts[0], type);
            break;
        case TopologyKind::kPlaced:
            add_all(part.parts[0], type);
            break;
    }
    return outputs;
}

const TypeMaps& Typing::infer(const Topology& part) {
    TypeMaps maps = maps_of(part);
    return parts_[&part] = std::move(maps);
}

TypeMaps Typing::serial(const TypeMaps& first, const Topology& part) const {
    const TypeMaps& then = of(part);
    TypeMaps maps;
    size_t made_so_far = 0;
    const auto apply_one = [&](const TypeMap& next, const LabelSet& type, std::vector<LabelSet>& outputs) {
        apply(next, type, outputs);
        check_number(outputs.size(), "comes out of here may be of", part.place);
    };
    const auto add = [&](TypeMap made) {
        made_so_far += made.outputs.size();
        maps.push_back(std::move(made));
        check_number(maps.size(), "comes up to here takes", part.place);
        check_number(made_so_far, "comes out of here may be of", part.place);
    };
    for (const TypeMap& map : first) {
        TypeMap made{map.input, {}};
        const TypeMap* undecided = nullptr;
        for (const LabelSet& output : map.outputs) {
            if (const TypeMap* next = best(then, output)) {
                apply_one(*next, output, made.outputs);
                continue;
            }
            // What is missing comes in with the record: where that is the only output, one way or the other;
            // else what is missing in each way.
            if (map.outputs.size() == 1) {
                undecided = &map;
                break;
            }
            if (then.empty()) continue;
            LabelSet missing = then.front().input.without(output);
            for (const TypeMap& next : then) {
                missing = missing.without(missing.without(next.input));
                apply_one(next, joined(output, next.input), made.outputs);
            }
            made.input.add(missing);
        }
        if (undecided == nullptr) {
            add(std::move(made));
            continue;
        }
        for (const TypeMap& next : then) {
            const LabelSet& output = map.outputs[0];
            TypeMap other{joined(map.input, next.input.without(output)), {}};
            apply_one(next, joined(output, next.input), other.outputs);
            add(std::move(other));
        }
    }
    return maps;
}

/// What leaves a part whose records go round in it, of one that enters by the map. `leaves`: 0 a record of
/// the type goes round, 1 it may do either, 2 it leaves.
template <class Leaves>
std::vector<LabelSet> Typing::in_the_end(const Topology& part, const TypeMap& map, Leaves leaves) const {
    const TypeMaps& inner = of(part.parts[0]);
    std::vector<LabelSet> leaving, seen = map.outputs;
    for (size_t i = 0; i < seen.size(); ++i) {
        const LabelSet type = seen[i];
        const int how = leaves(type);
        if (how > 0) add_type(leaving, type);
        if (how == 2) continue;
        if (const TypeMap* next = best(inner, type)) apply(*next, type, seen);
        check_number(seen.size(), "goes round here may be of", part.place);
    }
    return leaving;
}

TypeMaps Typing::maps_of(const Topology& part) {
    for (const Topology& inner : part.parts) (void)infer(inner);
    switch (part.kind) {
        case TopologyKind::kBox:
            return box_maps(*part.box);
        case TopologyKind::kNet:
            return infer(*part.net);
        case TopologyKind::kFilter:
            return filter_maps(part);
        case TopologyKind::kSync:
            return sync_maps(part);
        case TopologyKind::kSerial: {
            TypeMaps maps = of(part.parts[0]);
            for (size_t i = 1; i < part.parts.size(); ++i) maps = serial(maps, part.parts[i]);
            return maps;
        }
        case TopologyKind::kChoice: {
            TypeMaps maps;
            for (const Topology& branch : part.parts)
                maps.insert(maps.end(), of(branch).begin(), of(branch).end());
            return maps;
        }
        case TopologyKind::kStar: {
            TypeMaps maps;
            std::vector<LabelSet> patterns;
            for (const Pattern& pattern : part.patterns) patterns.emplace_back(pattern.variant);
            for (const LabelSet& set : patterns) maps.push_back({set, {set}});
            for (const TypeMap& map : of(part.parts[0])) {
                std::vector<LabelSet> leaving = in_the_end(
                    part, map, [&](const LabelSet& type) { return taken_by(part.patterns, type); });
                maps.push_back({map.input, leaving.empty() ? patterns : std::move(leaving)});
            }
            return maps;
        }
        case TopologyKind::kFeedback: {
            TypeMaps maps = of(part.parts[0]);
            for (TypeMap& map : maps)
                map.outputs = in_the_end(
                    part, map, [&](const LabelSet& type) { return 2 - taken_by(part.patterns, type); });
            return maps;
        }
        case TopologyKind::kSplit: {
            TypeMaps maps = of(part.parts[0]);
            for (TypeMap& map : maps) {
                map.input.add(part.tag);
                for (LabelSet& output : map.outputs) output.add(part.tag);
            }
            return maps;
        }
        case TopologyKind::kPlaced:
            return of(part.parts[0]);
    }
    return {};
}

}  // namespace heddle::streams
