#include "streams/explainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "streams/lexer.hpp"
#include "streams/program_text.hpp"

namespace heddle::streams {
namespace {

constexpr int kMostLines = 400;
constexpr int kMostDepth = 200;

struct Unknown {};  ///< thrown by an expression that needs a tag without a value

LabelSet labels_of(const KnownRecord& record) {
    LabelSet labels;
    for (const auto& [label, value] : record) labels.add(label);
    return labels;
}

/// "lacks <t>", "has <#b>, which is not named".
std::string misfit(const LabelSet& set, const LabelSet& type) {
    const LabelSet lacking = set.without(type);
    if (!lacking.labels().empty()) {
        std::string text = lacking.text();
        return fmt::format("lacks {}", text.substr(1, text.size() - 2));
    }
    const LabelSet foreign = type.without(set);
    for (const Label label : foreign.labels())
        if (label.kind() == LabelKind::kBindingTag)
            return fmt::format("does not name {}, and a binding tag fits only where it is named",
                               label.text());
    return {};
}

enum class Answer { kNo, kMaybe, kYes };

int value_of(const Expression& expression, const KnownRecord& record) {
    return evaluate(expression, [&](Label label) {
        const auto found = record.find(label);
        if (found == record.end() || !found->second) throw Unknown{};
        return *found->second;
    });
}

Answer holds(const Expression* guard, const KnownRecord& record) {
    if (guard == nullptr) return Answer::kYes;
    try {
        return value_of(*guard, record) != 0 ? Answer::kYes : Answer::kNo;
    } catch (const Unknown&) {
        return Answer::kMaybe;
    }
}

class Explainer {
  public:
    explicit Explainer(const Typing& typing) : typing_(typing) {}

    std::string of(const Program& program, const KnownRecord& record) {
        const NetDefinition& main = program.main();
        say(main.place, fmt::format("{} goes into the net \"{}\"", streams::text_of(record), main.name));
        through(main, main.place, record, [&](const KnownRecord& left) {
            say(main.place, fmt::format("{} leaves", streams::text_of(left)));
        });
        if (lines_ >= kMostLines) text_ += "and so on: these are the first steps\n";
        return std::move(text_);
    }

  private:
    using Next = std::function<void(const KnownRecord&)>;

    void say(Place place, std::string_view what) {
        if (lines_++ >= kMostLines) return;
        text_ += fmt::format("{:{}}{}: {}\n", "", indent_, place.source->where(place), what);
    }
    void add(std::string_view what) {
        if (lines_++ < kMostLines) text_ += fmt::format("{:{}}{}\n", "", indent_ + 4, what);
    }
    template <class Inside>
    void indented(bool wanted, const Inside& inside) {
        indent_ += wanted ? 2 : 0;
        inside();
        indent_ -= wanted ? 2 : 0;
    }
    [[nodiscard]] bool over() const { return lines_ >= kMostLines || depth_ >= kMostDepth; }

    void stops(Place place, const std::string& what, const std::vector<LabelSet>& wanted,
               const KnownRecord& record) {
        say(place, fmt::format("{} needs {}: {} cannot go on, and the run ends or it becomes a dead letter",
                               what, text_of(wanted), streams::text_of(record)));
        if (wanted.size() == 1) add(misfit(wanted[0], labels_of(record)));
    }

    /// What a part that uses up `used` makes of it.
    static KnownRecord inherited(KnownRecord made, const KnownRecord& from, const LabelSet& used) {
        for (const auto& [label, value] : from)
            if (!used.has(label) && label.kind() != LabelKind::kBindingTag) made.emplace(label, value);
        return made;
    }

    void box(const Topology& part, const KnownRecord& record, const Next& next) {
        const BoxDefinition& box = *part.box;
        const LabelSet input(box.input);
        const std::string what = fmt::format("the box \"{}\"", box.name);
        if (box.is_initialiser) return say(part.place, what + " starts by itself: no record goes there");
        if (input.fit(labels_of(record)) < 0) return stops(part.place, what, {input}, record);
        LabelSet used;
        for (const Entry& entry : box.input)
            if (!entry.passes) used.add(entry.label);
        say(part.place, fmt::format("{} is called{}", what,
                                    box.outputs.empty() ? ", and sends nothing" : ", and may send"));
        for (const Variant& output : box.outputs) {
            KnownRecord made;
            for (const Entry& entry : output) made[entry.label] = std::nullopt;
            made = inherited(std::move(made), record, used);
            add(streams::text_of(made));
            indented(box.outputs.size() > 1, [&] { next(made); });
        }
    }

    void filter(const Topology& part, const KnownRecord& record, const Next& next) {
        if (part.patterns.empty()) return next(record);
        const LabelSet pattern(part.patterns[0].variant);
        const std::string what = fmt::format("the filter {}", text_of_filter(part));
        if (pattern.fit(labels_of(record)) < 0) return stops(part.place, what, {pattern}, record);
        for (const GuardedAction& action : part.actions) {
            const Answer answer = holds(action.guard.get(), record);
            if (answer == Answer::kNo) continue;
            const std::string where = action.guard && answer == Answer::kMaybe
                                          ? fmt::format(", where {},", streams::text_of(*action.guard))
                                          : "";
            std::vector<KnownRecord> all;  // or none, where one of them cannot be made
            for (const OutputRecord& output : action.outputs)
                all.push_back(inherited(assigned(output, pattern, record), record, pattern));
            say(part.place,
                fmt::format("{}{} makes {}", what, where,
                            action.outputs.empty()       ? "nothing: the record ends here"
                            : action.outputs.size() == 1 ? "one record"
                                                         : fmt::format("{} records", action.outputs.size())));
            for (const KnownRecord& made : all) {
                add(streams::text_of(made));
                indented(action.outputs.size() > 1 || !where.empty(), [&] { next(made); });
            }
            if (answer == Answer::kYes) return;
        }
    }

    static KnownRecord assigned(const OutputRecord& output, const LabelSet& pattern,
                                const KnownRecord& from) {
        KnownRecord made;
        for (const Assignment& assignment : output) {
            if (assignment.label.kind() == LabelKind::kField && !from.contains(assignment.from))
                throw Error(ErrorCode::kBadInput,
                            fmt::format("the field {} that it copies is not there", assignment.from.text()));
            std::optional<int>& value = made[assignment.label];
            if (assignment.value) try {
                    value = value_of(*assignment.value, from);
                } catch (const Unknown&) {  // it stays unknown
                }
            else if (assignment.label.kind() != LabelKind::kField)
                value = pattern.has(assignment.from) ? from.at(assignment.from) : 0;
        }
        return made;
    }

    void sync(const Topology& part, const KnownRecord& record, const Next& next) {
        KnownRecord merged = record;
        bool fits = false;
        for (const Pattern& pattern : part.patterns) {
            const LabelSet set(pattern.variant);
            fits |= set.fit(labels_of(record)) >= 0 && holds(pattern.guard.get(), record) != Answer::kNo;
            for (const Label label : set.labels()) merged.emplace(label, std::nullopt);
        }
        const std::string what = fmt::format("the synchrocell [| {} |]", streams::text_of(part.patterns));
        if (!fits) {
            say(part.place, what + " lets it pass: it matches no pattern");
            return next(record);
        }
        say(part.place,
            fmt::format("{} keeps it until the others have come; where it has one like it already, "
                        "the record passes as it is. Then it sends",
                        what));
        add(streams::text_of(merged));
        next(merged);
    }

    void choice(const Topology& part, const KnownRecord& record, const Next& next) {
        const LabelSet labels = labels_of(record);
        struct Branch {
            int fit = -1;
            LabelSet best;
        };
        std::vector<Branch> branches;
        std::vector<LabelSet> wanted;
        for (const Topology& branch : part.parts) {
            Branch made;
            for (const LabelSet& set : inputs_of(typing_.of(branch))) {
                add_type(wanted, set);
                if (set.fit(labels) > made.fit) made = {set.fit(labels), set};
            }
            branches.push_back(std::move(made));
        }
        const auto best = std::max_element(branches.begin(), branches.end(),
                                           [](const Branch& a, const Branch& b) { return a.fit < b.fit; });
        say(part.place, fmt::format("a choice of {} for {}", branches.size(), streams::text_of(record)));
        for (size_t i = 0; i < branches.size(); ++i) {
            const Topology& branch = part.parts[i];
            const std::vector<LabelSet> sets = inputs_of(typing_.of(branch));
            const bool taken = branches[i].fit >= 0 && i == static_cast<size_t>(best - branches.begin());
            std::string why = fmt::format("{} matches {} label(s)", branches[i].best.text(), branches[i].fit);
            if (branches[i].fit < 0)
                why = sets.empty()       ? "takes no record"
                      : sets.size() == 1 ? fmt::format("{} {}", sets[0].text(), misfit(sets[0], labels))
                                         : fmt::format("none of {}", text_of(sets, ", "));
            else if (!taken && branches[i].fit == best->fit)
                why += ", as the first one that does";
            add(fmt::format("{} branch {} at {}: {}", taken ? ">" : " ", i + 1,
                            branch.place.source->where(branch.place), why));
        }
        if (best->fit < 0) return stops(part.place, "each branch", wanted, record);
        walk(part.parts[static_cast<size_t>(best - branches.begin())], record, next);
    }

    /// Whether one of the patterns matches; which one.
    static std::pair<Answer, const Pattern*> match(const std::vector<Pattern>& patterns,
                                                   const KnownRecord& record) {
        std::pair<Answer, const Pattern*> most{Answer::kNo, nullptr};
        for (const Pattern& pattern : patterns) {
            if (LabelSet(pattern.variant).fit(labels_of(record)) < 0) continue;
            const Answer answer = holds(pattern.guard.get(), record);
            if (answer > most.first) most = {answer, &pattern};
        }
        return most;
    }

    /// Before a stage of a star, or behind a feedback: a record that was here before with the same values
    /// would go round for ever.
    void turn(const Topology& part, const KnownRecord& record, const Next& leave) {
        const bool star = part.kind == TopologyKind::kStar;
        const auto [answer, pattern] = match(part.patterns, record);
        const std::string_view match_goes = star ? "it leaves" : "it goes back";
        const std::string_view other_goes = star ? "it goes into the next replica" : "it leaves";
        if (answer == Answer::kNo)
            say(part.place, fmt::format("{} matches none of {}: {}", streams::text_of(record),
                                        streams::text_of(part.patterns), other_goes));
        else
            say(part.place, fmt::format("{} {} {}: {}", streams::text_of(record),
                                        answer == Answer::kYes ? "matches" : "may match",
                                        streams::text_of(*pattern), match_goes));
        const bool both = answer == Answer::kMaybe;
        if (answer != Answer::kNo)
            indented(both, [&] { star ? leave(record) : around(part, record, leave); });
        if (both) say(part.place, fmt::format("else {}", other_goes));
        if (answer != Answer::kYes)
            indented(both, [&] { star ? around(part, record, leave) : leave(record); });
    }
    void around(const Topology& part, const KnownRecord& record, const Next& leave) {
        const auto [entry, fresh] = on_way_.insert({&part, record});
        if (!fresh) return say(part.place, "the same record was here before: it goes round as it did then");
        walk(part.parts[0], record, [&](const KnownRecord& made) { turn(part, made, leave); });
        on_way_.erase(entry);
    }

    void through(const NetDefinition& net, Place place, const KnownRecord& record, const Next& next) {
        const std::string what = fmt::format("the net \"{}\"", net.name);
        if (net.body && !net.has_signature) return walk(*net.body, record, next);
        const LabelSet labels = labels_of(record);
        const std::vector<LabelSet> sets = inputs_of(typing_.of(net));
        const LabelSet* best = nullptr;
        for (const LabelSet& set : sets)
            if (set.fit(labels) >= 0 && (best == nullptr || set.fit(labels) > best->fit(labels))) best = &set;
        if (best == nullptr) return stops(place, what, sets, record);
        if (!net.body) return say(place, what + " is only declared: what it does is not known");
        KnownRecord inside, aside;
        for (const auto& [label, value] : record) (best->has(label) ? inside : aside).emplace(label, value);
        if (!aside.empty())
            say(place, fmt::format("{} of {} takes {}; {} waits at its border", best->text(), what,
                                   streams::text_of(inside), streams::text_of(aside)));
        walk(*net.body, inside, [&](const KnownRecord& made) {
            KnownRecord left = made;
            for (const auto& [label, value] : aside)
                if (label.kind() != LabelKind::kBindingTag) left.emplace(label, value);
            next(left);
        });
    }

    void split(const Topology& part, const KnownRecord& record, const Next& next) {
        const auto tag = record.find(part.tag);
        LabelSet wanted;
        wanted.add(part.tag);
        if (tag == record.end()) return stops(part.place, "the choice of a replica", {wanted}, record);
        say(part.place, tag->second ? fmt::format("the replica for {} = {}", part.tag.text(), *tag->second)
                                    : fmt::format("a replica for the value of {}", part.tag.text()));
        walk(part.parts[0], record, next);
    }

    void serial(const Topology& part, size_t step, const KnownRecord& record, const Next& next) {
        if (step == part.parts.size()) return next(record);
        walk(part.parts[step], record,
             [&, step](const KnownRecord& made) { serial(part, step + 1, made, next); });
    }

    void walk(const Topology& part, const KnownRecord& record, const Next& next) {
        if (over()) {
            lines_ = kMostLines;
            return;
        }
        ++depth_;
        try {
            step(part, record, next);
        } catch (const Error& error) {  // of an expression
            say(part.place,
                fmt::format("{}: the run ends here, or the record becomes a dead letter", error.what()));
        }
        --depth_;
    }

    void step(const Topology& part, const KnownRecord& record, const Next& next) {
        switch (part.kind) {
            case TopologyKind::kBox:
                return box(part, record, next);
            case TopologyKind::kNet:
                return through(*part.net, part.place, record, next);
            case TopologyKind::kFilter:
                return filter(part, record, next);
            case TopologyKind::kSync:
                return sync(part, record, next);
            case TopologyKind::kSerial:
                return serial(part, 0, record, next);
            case TopologyKind::kChoice:
                return choice(part, record, next);
            case TopologyKind::kStar:
                return turn(part, record, next);
            case TopologyKind::kFeedback:
                return around(part, record, next);
            case TopologyKind::kSplit:
                return split(part, record, next);
            case TopologyKind::kPlaced:
                return walk(part.parts[0], record, next);
        }
    }

    const Typing& typing_;
    std::string text_;
    std::set<std::pair<const Topology*, KnownRecord>> on_way_;
    int lines_ = 0, indent_ = 0, depth_ = 0;
};

}  // namespace

KnownRecord read_known_record(std::string_view text) {
    const Source source("record", std::string(text));
    Lexer lexer(source);
    const auto expect = [&](std::string_view symbol) {
        if (!lexer.now().is(symbol))
            source.fail(
                lexer.now().place,
                fmt::format("\"{}\" is wanted here: a record is written as in {{a, <t = 3>}}", symbol));
        lexer.take();
    };
    const auto skip = [&](std::string_view symbol) {
        const bool is = lexer.now().is(symbol);
        if (is) lexer.take();
        return is;
    };
    KnownRecord record;
    expect("{");
    for (bool first = true; !lexer.now().is("}"); first = false) {
        if (!first) expect(",");
        const bool tag = skip("<");
        const LabelKind kind = !tag        ? LabelKind::kField
                               : skip("#") ? LabelKind::kBindingTag
                                           : LabelKind::kTag;
        const Token name = lexer.take();
        if (name.kind != TokenKind::kIdentifier)
            source.fail(name.place, "the name of a label is wanted here");
        std::optional<int> value;
        if (tag && skip("=")) {
            const bool negative = skip("-");
            const Token digits = lexer.take();
            int64_t number = 0;
            for (const char c : digits.text)
                number =
                    c < '0' || c > '9' || number > INT32_MAX ? int64_t{1} << 40 : number * 10 + (c - '0');
            if (negative) number = -number;
            if (digits.kind != TokenKind::kInteger || number < INT32_MIN || number > INT32_MAX)
                source.fail(digits.place, "the value of a tag is an int");
            value = static_cast<int>(number);
        }
        if (tag) expect(">");
        if (!record.emplace(Label(kind, name.text), value).second)
            source.fail(name.place, "this label comes twice");
    }
    lexer.take();
    if (lexer.now().kind != TokenKind::kEnd) source.fail(lexer.now().place, "the record has ended before");
    return record;
}

std::string text_of(const KnownRecord& record) {
    std::string text = "{";
    for (const auto& [label, value] : record) {
        if (text.size() > 1) text += ", ";
        const std::string name = label.text();
        text += value ? fmt::format("{} = {}>", name.substr(0, name.size() - 1), *value) : name;
    }
    return text + "}";
}

std::string explain(const Program& program, const Typing& typing, const KnownRecord& record) {
    return Explainer(typing).of(program, record);
}

}  // namespace heddle::streams
