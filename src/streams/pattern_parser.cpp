#include "streams/pattern_parser.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::streams {
namespace {

constexpr std::string_view kKeywords[] = {"box",  "net",  "type", "typesig", "connect", "if",
                                          "then", "else", "abs",  "min",     "max"};

bool has(const Variant& variant, Label label) {
    return std::any_of(variant.begin(), variant.end(), [&](const Entry& e) { return e.label == label; });
}

/// "{a, <t>}", and `label` at its end.
std::string with(const Variant& variant, Label label) {
    std::string text = "{";
    for (const Entry& entry : variant) text += entry.label.text() + ", ";
    return text + label.text() + "}";
}

}  // namespace

bool PatternParser::skip(std::string_view what) {
    if (!at(what)) return false;
    lexer_.take();
    return true;
}

Place PatternParser::expect(std::string_view what, std::string_view why) {
    if (what == ">" && at(">=")) lexer_.split(1);
    if (!at(what)) {
        const std::string found =
            now().kind == TokenKind::kEnd ? "the end" : fmt::format("\"{}\"", now().text);
        fail(now().place, fmt::format("\"{}\" is wanted here, {}; this is {}", what, why, found));
    }
    return lexer_.take().place;
}

Token PatternParser::name(std::string_view of) {
    const bool keyword =
        std::find(std::begin(kKeywords), std::end(kKeywords), now().text) != std::end(kKeywords);
    if (now().kind != TokenKind::kIdentifier || keyword)
        fail(now().place,
             fmt::format("the name of {} is wanted here{}", of,
                         keyword ? fmt::format(", and \"{}\" is a word of S-Net", now().text) : ""));
    return lexer_.take();
}

Variant PatternParser::tuple(std::string_view open, std::string_view close, bool may_pass) {
    Variant entries;
    expect(open, "for labels");
    while (!at(close)) {
        if (!entries.empty()) expect(",", "between two labels");
        const Place place = lexer_.now().place;
        entries.push_back(entry(may_pass));
        if (std::ranges::count(entries, entries.back().label, &Entry::label) > 1)
            fail_as_twice(place, entries.back().label);
    }
    lexer_.take();
    return entries;
}

void PatternParser::fail_as_twice(Place place, Label label) const {
    fail(place, fmt::format("{} is named twice: a record has one of each label", label.text()));
}

Entry PatternParser::entry(bool may_pass) {
    const bool passes_before = may_pass && skip("=");
    Entry made;
    made.place = now().place;
    if (skip("<")) {
        made.label = tag_name();
        expect(">", "to end the tag");
    } else {
        made.label = Label(LabelKind::kField, name("a field").text);
    }
    made.passes = (may_pass && skip("=")) || passes_before;
    if (made.passes && made.label.kind() == LabelKind::kBindingTag)
        fail(made.place, "a binding tag is never passed on: leave out its \"=\"");
    return made;
}

Label PatternParser::tag_name() {
    const LabelKind kind = skip("#") ? LabelKind::kBindingTag : LabelKind::kTag;
    return {kind, name("a tag").text};
}

Pattern PatternParser::pattern() {
    Pattern made{tuple("{", "}", false), nullptr};
    if (at("if")) {
        made.guard = guard();
        check_tags(*made.guard, made.variant);
    }
    return made;
}

std::unique_ptr<Expression> PatternParser::guard() {
    expect("if", "before a condition");
    expect("<", "before a condition");
    auto condition = expressions_.truth();
    expect(">", "after a condition");
    return condition;
}

Topology PatternParser::sync() {
    Topology made(TopologyKind::kSync, lexer_.take().place);
    do made.patterns.push_back(pattern());
    while (skip(","));
    expect("|]", "to end the synchrocell");
    if (made.patterns.size() < 2) fail(made.place, "a synchrocell joins records of at least two patterns");
    if (made.patterns.size() > 64) fail(made.place, "a synchrocell has at most 64 patterns");
    return made;
}

Topology PatternParser::filter() {
    Topology made(TopologyKind::kFilter, lexer_.take().place);
    if (skip("]")) return made;
    made.patterns.push_back({tuple("{", "}", false), nullptr});
    const Variant& given = made.patterns[0].variant;
    expect("->", "between the pattern of a filter and what it makes");
    while (at("if")) {
        GuardedAction guarded{guard(), {}};
        check_tags(*guarded.guard, given);
        expect("then", "after the condition");
        guarded.outputs = action(given);
        made.actions.push_back(std::move(guarded));
        expect("else", "before what is done otherwise");
    }
    made.actions.push_back({nullptr, action(given)});
    expect("]", "to end the filter");
    return made;
}

std::vector<OutputRecord> PatternParser::action(const Variant& given) {
    std::vector<OutputRecord> records;
    while (at("{")) {
        lexer_.take();
        OutputRecord record;
        while (!at("}")) {
            if (!record.empty()) expect(",", "between two labels");
            const Place place = now().place;
            record.push_back(assignment(given));
            if (std::ranges::count(record, record.back().label, &Assignment::label) > 1)
                fail_as_twice(place, record.back().label);
        }
        lexer_.take();
        records.push_back(std::move(record));
        if (!skip(";")) break;
    }
    return records;
}

Assignment PatternParser::assignment(const Variant& given) {
    Assignment made;
    made.place = now().place;
    if (skip("<")) {
        made.label = made.from = tag_name();
        if (skip("=")) {
            made.value = expressions_.integer();
            check_tags(*made.value, given);
        }
        expect(">", "to end the tag");
        return made;
    }
    made.label = made.from = Label(LabelKind::kField, name("a field").text);
    if (skip("=")) {
        made.place = now().place;
        made.from = Label(LabelKind::kField, name("a field").text);
    }
    return made;
}

void PatternParser::check_tags(const Expression& e, const Variant& given) const {
    if (e.op == Operator::kTag && !has(given, e.tag))
        source_.fail(
            e.place,
            fmt::format("the pattern has no tag {}: an expression knows only the tags of its pattern "
                        "[unknown-tag]",
                        e.tag.text()),
            fmt::format("name it in the pattern: {}", with(given, e.tag)));
    for (const auto* part : {&e.a, &e.b, &e.c})
        if (*part) check_tags(**part, given);
}

}  // namespace heddle::streams
