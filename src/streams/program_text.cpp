#include "streams/program_text.hpp"

#include <fmt/format.h>

namespace heddle::streams {
namespace {

std::string labels_of(const Variant& variant) {
    std::string text;
    for (const Entry& entry : variant)
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ", entry.label.text(), entry.passes ? "=" : "");
    return text;
}

std::string text_of(const Assignment& assignment) {
    const std::string label = assignment.label.text();
    if (assignment.value)
        return fmt::format("{} = {}>", label.substr(0, label.size() - 1), text_of(*assignment.value));
    return assignment.label == assignment.from ? label
                                               : fmt::format("{} = {}", label, assignment.from.text());
}

std::string text_of(const std::vector<OutputRecord>& outputs) {
    std::string text;
    for (const OutputRecord& output : outputs) {
        std::string inner;
        for (const Assignment& assignment : output)
            inner += fmt::format("{}{}", inner.empty() ? "" : ", ", text_of(assignment));
        text += fmt::format("{}{{{}}}", text.empty() ? "" : "; ", inner);
    }
    return text;
}

}  // namespace

std::string text_of(const Variant& variant) {
    return fmt::format("{{{}}}", labels_of(variant));
}

std::string text_of(const Pattern& pattern) {
    const std::string variant = text_of(pattern.variant);
    return pattern.guard ? fmt::format("{} if <{}>", variant, text_of(*pattern.guard)) : variant;
}

std::string text_of(const std::vector<Pattern>& patterns) {
    std::string text;
    for (const Pattern& pattern : patterns)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", text_of(pattern));
    return text;
}

std::string text_of_filter(const Topology& filter) {
    if (filter.patterns.empty()) return "[]";
    std::string text = fmt::format("[{} ->", text_of(filter.patterns[0].variant));
    for (const GuardedAction& action : filter.actions) {
        if (action.guard) text += fmt::format(" if <{}> then", text_of(*action.guard));
        const std::string outputs = text_of(action.outputs);
        if (!outputs.empty()) text += " " + outputs;
        if (action.guard) text += " else";
    }
    return text + "]";
}

std::string text_of_signature(const BoxDefinition& box) {
    std::string text = box.is_initialiser ? "->" : fmt::format("({}) ->", labels_of(box.input));
    for (size_t i = 0; i < box.outputs.size(); ++i)
        text += fmt::format("{} ({})", i == 0 ? "" : " |", labels_of(box.outputs[i]));
    return text;
}

}  // namespace heddle::streams
