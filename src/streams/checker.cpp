#include "streams/checker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::streams {
namespace {

int best_fit(const TypeMaps& maps, const LabelSet& type) {
    int best = -1;
    for (const TypeMap& map : maps) best = std::max(best, map.input.fit(type));
    return best;
}

bool is_initialiser(const Topology& part) {
    return part.kind == TopologyKind::kBox && part.box->is_initialiser;
}

/// What the first parts of a net take: what it is given where no signature tells. `transparent`: a record may
/// pass them without being looked at.
std::vector<LabelSet> heads(const Topology& part, const Typing& typing, bool& transparent) {
    std::vector<LabelSet> types;
    const auto add_all = [&](const std::vector<LabelSet>& more) {
        for (const LabelSet& type : more) add_type(types, type);
    };
    transparent = false;
    switch (part.kind) {
        case TopologyKind::kSerial:
            transparent = true;
            for (size_t i = 0; transparent && i < part.parts.size(); ++i)
                add_all(heads(part.parts[i], typing, transparent));
            return types;
        case TopologyKind::kChoice:
            for (const Topology& branch : part.parts) {
                bool one = false;
                add_all(heads(branch, typing, one));
                transparent |= one;
            }
            return types;
        case TopologyKind::kNet:
            if (!part.net->has_signature && part.net->body)
                return heads(*part.net->body, typing, transparent);
            return inputs_of(typing.of(*part.net));
        case TopologyKind::kStar:
        case TopologyKind::kFeedback:
        case TopologyKind::kPlaced:
        case TopologyKind::kSplit: {
            for (LabelSet type : heads(part.parts[0], typing, transparent)) {
                if (part.kind == TopologyKind::kSplit) type.add(part.tag);
                add_type(types, std::move(type));
            }
            if (part.kind != TopologyKind::kSplit || !transparent) return types;
            transparent = false;
            return inputs_of(typing.of(part));
        }
        case TopologyKind::kFilter:
            transparent = part.patterns.empty();
            if (transparent) return {};
            [[fallthrough]];
        case TopologyKind::kBox:
        case TopologyKind::kSync:
            return inputs_of(typing.of(part));
    }
    return types;
}

}  // namespace

std::vector<Finding> Checker::check() {
    check_from(program_.main());
    conclude();
    find_what_never_works();
    check_unreached(program_.nets);
    conclude();
    std::vector<Finding> all;
    for (const auto& [place, finding] : findings_) all.push_back(finding);
    return all;
}

void Checker::check_from(const NetDefinition& net) {
    sent_to_ = net.place;
    if (net.has_signature || !net.body) {
        given_ = inputs_of(typing_.of(net));
    } else {
        bool transparent = false;
        given_ = heads(*net.body, typing_, transparent);
        if (transparent) add_type(given_, {});
    }
    Types types;
    for (const LabelSet& type : given_) add(types, {type, {}});
    (void)through_net(net, types, net.place);
    check_what_is_generated(net);
}

void Checker::check_unreached(const std::vector<std::unique_ptr<NetDefinition>>& nets) {
    std::for_each(nets.rbegin(), nets.rend(), [this](const std::unique_ptr<NetDefinition>& net) {
        if (net->body && !reached_.contains(net.get())) check_from(*net);
        check_unreached(net->nets);
    });
}

void Checker::conclude() {
    find_untaken();
    find_working_nets();
    find_endless_nets();
}

void Checker::put(Types& types, Traced type) const {
    types.push_back(std::move(type));
    check_number(types.size(), "comes to here is of", sent_to_);
}

void Checker::add(Types& types, Traced type) const {
    const auto known = std::find_if(types.begin(), types.end(),
                                    [&](const Traced& other) { return other.labels == type.labels; });
    if (known == types.end())
        put(types, std::move(type));
    else  // what only one of the two has lost, the other may still have
        std::erase_if(known->lost, [&](const auto& loss) { return !type.lost.contains(loss.first); });
}

Checker::Types Checker::first_seen(const Types& types, Types& seen) const {
    Types fresh;
    for (const Traced& type : types) {
        const bool known = std::any_of(seen.begin(), seen.end(),
                                       [&](const Traced& other) { return other.labels == type.labels; });
        if (known) continue;
        put(seen, type);
        fresh.push_back(type);
    }
    return fresh;
}

void Checker::apply(const TypeMap& map, const Traced& type, const Loss& loss, Types& outputs) const {
    std::vector<LabelSet> made;
    streams::apply(map, type.labels, made);
    for (LabelSet& labels : made) {
        Traced output{std::move(labels), type.lost};
        for (const Label label : type.labels.labels()) output.lost.insert_or_assign(label, loss);
        std::erase_if(output.lost, [&](const auto& lost) { return output.labels.has(lost.first); });
        add(outputs, std::move(output));
    }
}

Checker::Types Checker::through_maps(const TypeMaps& maps, const Types& types, Place place,
                                     const std::string& what, const Loss& loss) {
    Types outputs;
    for (const Traced& type : types) {
        const int best = best_fit(maps, type.labels);
        if (best < 0) {
            find_missing(place, what, inputs_of(maps), type);
            for (const TypeMap& map : maps)
                if (const auto hoped = saved(map.input, type)) apply(map, *hoped, loss, outputs);
            continue;
        }
        const auto taken = std::find_if(
            maps.begin(), maps.end(), [&](const TypeMap& map) { return map.input.fit(type.labels) == best; });
        apply(*taken, type, loss, outputs);
    }
    return outputs;
}

Checker::Types Checker::through_box(const Topology& part, const Types& types) {
    const std::string what = fmt::format("the box \"{}\"", part.box->name);
    if (part.box->is_initialiser) {
        for (const Traced& type : types) find_missing(part.place, what, {}, type);
        Types outputs;
        for (const Variant& output : part.box->outputs) add(outputs, {LabelSet(output), {}});
        return outputs;
    }
    return through_maps(
        typing_.of(part), types, part.place, what,
        {part.box->place, fmt::format("{} takes it and does not send it on", what),
         "let the box send it, or write a \"=\" behind it in the box's signature, which passes it on"});
}

Checker::Types Checker::through_filter(const Topology& part, const Types& types) {
    Types having;
    for (const Traced& type : types)
        if (part.patterns.empty() || find_foreign_fields(part, type)) having.push_back(type);
    return through_maps(typing_.of(part), having, part.place, "this filter",
                        {part.place, "this filter takes it and does not put it into what it makes",
                         "name it in what the filter makes, too"});
}

Checker::Types Checker::through_net(const NetDefinition& net, const Types& types, Place place) {
    const std::string what = fmt::format("the net \"{}\"", net.name);
    reached_.insert(&net);
    if (!net.body) find({Hole::kUndefined, net.place, only_declared(net), {}, "write that file", true});
    if (net.body && !net.has_signature) return send(*net.body, types);
    if (quiet_ && net.body && !working_.contains(&net)) return {};
    Types outputs =
        through_maps(typing_.of(net), types, place, what,
                     {net.place, fmt::format("by its signature, {} takes it and does not give it back", what),
                      "name it in what the net gives"});
    const bool is_open = std::find(open_.begin(), open_.end(), &net) != open_.end();
    if (quiet_ || is_open || !net.body) return outputs;
    nets_.insert(&net);
    open_.push_back(&net);
    ++closed_;
    check_body(net, types);
    --closed_;
    open_.pop_back();
    return outputs;
}

void Checker::check_body(const NetDefinition& net, const Types& types) {
    Types inside;
    TypeMaps maps;
    for (const TypeMap& map : typing_.of(net)) {
        bool comes = false;
        for (const Traced& type : types) {
            const int fit = map.input.fit(type.labels);
            if (fit < 0 || fit != best_fit(typing_.of(net), type.labels)) continue;
            comes = true;
            Traced entering{map.input, type.lost};
            const LabelSet outside = type.labels.without(map.input);
            for (const Label label : outside.labels())
                entering.lost.insert_or_assign(
                    label, Loss{net.place,
                                fmt::format("the signature of the net \"{}\" does not name it, so that it "
                                            "waits at the border until the record leaves",
                                            net.name),
                                "name it in what the signature takes"});
            add(inside, std::move(entering));
        }
        if (comes) maps.push_back(map);
    }
    if (inside.empty()) return;
    for (const Traced& type : send(*net.body, inside)) check_promise(net, maps, type);
}

/// What the net sends by itself, where its signature says so by a map without an input.
void Checker::check_what_is_generated(const NetDefinition& net) {
    TypeMaps maps;
    for (const Map& map : net.signature) {
        if (!map.input.empty()) continue;
        maps.emplace_back();
        for (const Variant& output : map.output) maps.back().outputs.emplace_back(output);
    }
    if (maps.empty() || !net.body) return;
    ++closed_;
    for (const Traced& type : initial(*net.body)) check_promise(net, maps, type);
    --closed_;
}

Checker::Types Checker::through_choice(const Topology& part, const Types& types) {
    Visits& seen = visits(part);
    std::vector<Types> sent(part.parts.size());
    for (const Traced& type : types) {
        add(seen.came, type);
        std::vector<int> fits;
        for (const Topology& branch : part.parts) fits.push_back(best_fit(typing_.of(branch), type.labels));
        const auto first = std::max_element(fits.begin(), fits.end());
        const auto taken = static_cast<size_t>(first - fits.begin());
        if (*first < 0) {
            std::vector<LabelSet> wanted;
            for (size_t i = 0; i < part.parts.size(); ++i)
                for (const LabelSet& set : inputs_of(typing_.of(part.parts[i]))) {
                    add_type(wanted, set);
                    if (auto hoped = saved(set, type)) add(sent[i], std::move(*hoped));
                }
            find_missing(part.place, "each branch", wanted, type);
            continue;
        }
        for (size_t i = 0; i < fits.size(); ++i) {
            if (fits[i] == *first && i != taken) seen.tied.insert(i);
            if (fits[i] >= 0 && i != taken) seen.beaten.emplace(i, taken);
        }
        if (const auto second = std::find(first + 1, fits.end(), *first); second != fits.end())
            find({Hole::kTie,
                  part.place,
                  fmt::format("two branches fit {} equally well: the first one takes it", type.labels.text()),
                  {{part.parts[static_cast<size_t>(second - fits.begin())].place, "this is the other one"}},
                  "let one of them need a label more, or take it out where nothing is meant for it"});
        seen.taken.insert(taken);
        add(sent[taken], type);
    }
    Types outputs;
    for (size_t i = 0; i < part.parts.size(); ++i)
        for (const Traced& type : send(part.parts[i], sent[i])) add(outputs, type);
    return outputs;
}

Checker::Types Checker::through_star(const Topology& part, const Types& types) {
    Visits& seen = visits(part);
    Types leaving, inside, arriving = types;
    while (!arriving.empty()) {
        Types staying;
        for (const Traced& type : arriving) {
            add(seen.came, type);
            const int leave = taken_by(part.patterns, type.labels, &seen.taken);
            if (leave > 0) add(leaving, type);
            if (leave < 2) add(staying, type);
            for (const Pattern& pattern : part.patterns)
                if (auto hoped = saved(LabelSet(pattern.variant), type)) add(leaving, std::move(*hoped));
        }
        const Types fresh = first_seen(staying, inside);
        arriving = fresh.empty() ? fresh : send(part.parts[0], fresh);
    }
    return leaving;
}

Checker::Types Checker::through_feedback(const Topology& part, const Types& types) {
    Visits& seen = visits(part);
    Types leaving, inside, arriving = types;
    while (!arriving.empty()) {
        Types back;
        const Types fresh = first_seen(arriving, inside);
        for (const Traced& type : fresh.empty() ? fresh : send(part.parts[0], fresh)) {
            add(seen.came, type);
            const int returns = taken_by(part.patterns, type.labels, &seen.taken);
            if (returns > 0) add(back, type);
            if (returns < 2) add(leaving, type);
        }
        arriving = std::move(back);
    }
    if (leaving.empty() && !seen.taken.empty())
        find({Hole::kEndless,
              part.place,
              "no record ever leaves this: all go back",
              {},
              "give the pattern a condition, as in {<n>} if <n > 0>, or let the last turn make another label",
              closed_ > 0});
    return leaving;
}

Checker::Types Checker::through_sync(const Topology& part, const Types& types) const {
    // Once it has fired, all goes through.
    Types outputs = types;
    LabelSet all;
    for (const Pattern& pattern : part.patterns) all.add(LabelSet(pattern.variant));
    for (const Traced& type : types) {
        if (LabelSet(part.patterns[0].variant).fit(type.labels) < 0) continue;
        Traced merged = type;
        merged.labels.add(all);
        for (const Traced& other : types) {
            const LabelSet rest = other.labels.without(merged.labels);
            for (const Label label : rest.labels())
                merged.lost.insert_or_assign(
                    label, Loss{part.place,
                                "of all records but the first, the synchrocell keeps only what its patterns "
                                "name",
                                "name it in its pattern of the synchrocell"});
        }
        std::erase_if(merged.lost, [&](const auto& lost) { return merged.labels.has(lost.first); });
        add(outputs, std::move(merged));
    }
    return outputs;
}

Checker::Types Checker::with_tag(const Topology& part, const Types& types) {
    LabelSet wanted;
    wanted.add(part.tag);
    Types having;
    for (const Traced& type : types) {
        if (type.labels.has(part.tag)) {
            having.push_back(type);
            continue;
        }
        find_missing(part.place, "the choice of a replica", {wanted}, type);
        if (auto hoped = saved(wanted, type)) having.push_back(std::move(*hoped));
    }
    return having;
}

Checker::Types Checker::initial(const Topology& part) {
    Types outputs;
    if (is_initialiser(part)) return through_box(part, {});
    if (part.kind == TopologyKind::kSerial)
        for (const Topology& step : part.parts) outputs = send(step, outputs);
    if (part.kind == TopologyKind::kChoice)
        for (const Topology& branch : part.parts)
            for (const Traced& type : initial(branch)) add(outputs, type);
    if (part.kind == TopologyKind::kPlaced) return initial(part.parts[0]);
    if (part.kind != TopologyKind::kNet || !part.net->body || typing_.is_recursive(*part.net)) return outputs;
    reached_.insert(part.net);
    outputs = initial(*part.net->body);
    if (!part.net->has_signature || outputs.empty()) return outputs;
    if (!quiet_) check_what_is_generated(*part.net);
    Types promised;
    for (const Map& map : part.net->signature)
        for (const Variant& output : map.output) add(promised, {LabelSet(output), {}});
    return promised.empty() ? outputs : promised;
}

Checker::Types Checker::send(const Topology& part, const Types& types) {
    sent_to_ = part.place;
    if (types.empty()) return initial(part);
    switch (part.kind) {
        case TopologyKind::kBox:
            return through_box(part, types);
        case TopologyKind::kFilter:
            return through_filter(part, types);
        case TopologyKind::kNet:
            return through_net(*part.net, types, part.place);
        case TopologyKind::kSync:
            return through_sync(part, types);
        case TopologyKind::kSerial: {
            Types now = types;
            for (const Topology& step : part.parts) now = send(step, now);
            return now;
        }
        case TopologyKind::kChoice:
            return through_choice(part, types);
        case TopologyKind::kStar:
            return through_star(part, types);
        case TopologyKind::kFeedback:
            return through_feedback(part, types);
        case TopologyKind::kSplit:
            return send(part.parts[0], with_tag(part, types));
        case TopologyKind::kPlaced:
            return send(part.parts[0], types);
    }
    return {};
}

}  // namespace heddle::streams
