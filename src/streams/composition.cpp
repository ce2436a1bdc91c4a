#include "streams/composition.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "streams/checker.hpp"
#include "streams/parser.hpp"

namespace heddle::snet {
namespace detail {
namespace {

/// The name of the net that is all of a program; those of users cannot be this one.
constexpr const char* kWhole = "network";

/// Throws kBadInput where the pieces of a program are none.
void check_words(const std::string& what, const std::string& text) {
    (void)streams::parse(streams::Source(what, text));
}

/// Throws kBadInput where the text is anything but one part of this kind, around the identity at most.
void check_part(const std::string& what, const std::string& text, streams::TopologyKind kind) {
    const auto program =
        streams::parse(streams::Source(what, fmt::format("net {} connect {};", kWhole, text)));
    const streams::Topology& part = *program->main().body;
    const bool is_around_identity =
        part.parts.empty() || (part.parts.size() == 1 && part.parts[0].parts.empty());
    if (program->nets.size() != 1 || part.kind != kind || !is_around_identity)
        throw Error(ErrorCode::kBadInput, fmt::format("more than one {}: {}", what, text));
}

void add(NetParts& to, const NetParts& from) {
    for (const auto& [name, box] : from.boxes)
        if (const auto [known, is_new] = to.boxes.emplace(name, box); !is_new && known->second != box)
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("two boxes are called \"{}\": a box may be used several times, but each "
                                    "has a name of its own",
                                    name));
    for (const auto& net : from.nets) {
        const auto same = [&](const auto& known) { return known->name == net->name; };
        const auto known = std::find_if(to.nets.begin(), to.nets.end(), same);
        if (known == to.nets.end())
            to.nets.push_back(net);
        else if (*known != net)
            throw Error(ErrorCode::kInvalidArgument, fmt::format("two nets are called \"{}\"", net->name));
    }
    for (const auto& [label, type] : from.types)
        if (const auto [known, is_new] = to.types.emplace(label, type);
            !is_new && *known->second.first != *type.first)
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("the field {} holds {} in the box \"{}\" and {} in the box \"{}\"", label,
                                    type_name(*known->second.first), known->second.second,
                                    type_name(*type.first), type.second));
    for (const auto& net : to.nets)
        if (to.boxes.contains(net->name))
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("a box and a net are called \"{}\"", net->name));
}

Net of(NetParts parts) {
    return Net(std::make_shared<const NetParts>(std::move(parts)));
}

/// Without its parentheses where they say nothing: a pipeline or a choice may be composed of as many parts as
/// one likes.
std::string_view operand_of(const NetParts& parts, std::string_view combinator) {
    std::string_view text = parts.topology;
    if (parts.joined_by == combinator) text = text.substr(1, text.size() - 2);
    return text;
}

Net composed(const Net& first, const char* combinator, const Net& second) {
    NetParts parts;
    add(parts, first.parts());
    add(parts, second.parts());
    parts.joined_by = combinator;
    parts.topology = fmt::format("({} {} {})", operand_of(first.parts(), combinator), combinator,
                                 operand_of(second.parts(), combinator));
    return of(std::move(parts));
}

/// A net, and what stands behind it.
Net with(const Net& net, const std::string& behind, streams::TopologyKind kind) {
    check_part("pattern", "[] " + behind, kind);
    NetParts parts = net.parts();
    parts.topology = fmt::format("({} {})", parts.topology, behind);
    parts.joined_by = {};
    return of(std::move(parts));
}

std::string joined(const std::vector<Pattern>& patterns) {
    std::string all;
    for (const Pattern& pattern : patterns) all += (all.empty() ? "" : ", ") + pattern.text();
    return all;
}

/// Of words that stand for themselves.
Net plain(const char* what, std::string topology, streams::TopologyKind kind) {
    check_part(what, topology, kind);
    NetParts parts;
    parts.topology = std::move(topology);
    return of(std::move(parts));
}

}  // namespace

std::string NetParts::text() const {
    std::string all;
    for (const auto& [name, box] : boxes) all += fmt::format("box {} {};\n", name, box->signature);
    for (const auto& net : nets) all += net->text;
    return all + fmt::format("net {} connect {};\n", kWhole, topology);
}

std::unique_ptr<streams::Program> NetParts::program() const {
    return streams::parse(streams::Source(kWhole, text()));
}

Net make_box(std::string name, std::string signature, std::vector<LabelType> types,
             std::function<void(BoxCall&)> function, BoxOptions options) {
    if (options.calls < 1)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the box \"{}\" is to be called {} times at once: that is 1 or more", name,
                                options.calls));
    check_words("box", fmt::format("box {} {};\nnet {} connect {};", name, signature, kWhole, name));
    NetParts parts;
    parts.topology = name;
    for (const LabelType& type : types) {
        if (type.label.starts_with("<")) continue;
        NetParts one;
        one.types.emplace(type.label, std::pair(type.type, name));
        add(parts, one);
    }
    auto made = std::make_shared<const ComposedBox>(
        ComposedBox{name, std::move(signature), std::move(types), std::move(function), options});
    parts.boxes.emplace(std::move(name), std::move(made));
    return of(std::move(parts));
}

Net make_net(std::string name, std::string signature, const Net& body) {
    if (name == kWhole)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is the name of all that is composed: a net has another", name));
    check_words("net", fmt::format("net {} {};\nnet {} connect {};", name, signature, kWhole, name));
    NetParts parts, defined = body.parts();
    std::string text = fmt::format("net {} {} connect {};\n", name, signature, defined.topology);
    defined.nets.push_back(std::make_shared<const ComposedNet>(ComposedNet{name, std::move(text)}));
    add(parts, defined);
    parts.topology = std::move(name);
    return of(std::move(parts));
}

Net make_split(const Net& net, const std::string& tag, bool ordered) {
    return with(net, (ordered ? "!! " : "! ") + tag, streams::TopologyKind::kSplit);
}

}  // namespace detail

std::string Net::text() const {
    return parts_->text();
}

std::vector<std::string> Net::check() const {
    const auto program = parts_->program();
    const streams::Typing typing(*program);
    std::vector<std::string> all;
    streams::Checker checker(*program, typing);
    for (const streams::Finding& finding : checker.check()) all.push_back(finding.text());
    return all;
}

Net filter(std::string_view text) {
    return detail::plain("filter", fmt::format("[{}]", text), streams::TopologyKind::kFilter);
}
Net identity() {
    return detail::plain("identity", "[]", streams::TopologyKind::kFilter);
}
Net synchronize(const std::vector<Pattern>& patterns) {
    return detail::plain("synchrocell", fmt::format("[|{}|]", detail::joined(patterns)),
                         streams::TopologyKind::kSync);
}

Net operator>>(const Net& first, const Net& second) {
    return detail::composed(first, "..", second);
}
Net operator|(const Net& first, const Net& second) {
    return detail::composed(first, "|", second);
}
Net operator||(const Net& first, const Net& second) {
    return detail::composed(first, "||", second);
}
Net star(const Net& net, const std::vector<Pattern>& exits) {
    return detail::with(net, "* " + detail::joined(exits), streams::TopologyKind::kStar);
}
Net ordered_star(const Net& net, const std::vector<Pattern>& exits) {
    return detail::with(net, "** " + detail::joined(exits), streams::TopologyKind::kStar);
}
Net feedback(const Net& net, const std::vector<Pattern>& back) {
    return detail::with(net, "\\ " + detail::joined(back), streams::TopologyKind::kFeedback);
}

}  // namespace heddle::snet
