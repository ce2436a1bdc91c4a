#include "streams/matching.hpp"

#include <algorithm>

namespace heddle::streams {

LabelSet::LabelSet(const Variant& variant) {
    for (const Entry& entry : variant) add(entry.label);
}

bool LabelSet::has(Label label) const {
    return std::binary_search(labels_.begin(), labels_.end(), label);
}

void LabelSet::add(Label label) {
    const auto place = std::lower_bound(labels_.begin(), labels_.end(), label);
    if (place == labels_.end() || *place != label) labels_.insert(place, label);
}

void LabelSet::add(const LabelSet& other) {
    for (const Label label : other.labels_) add(label);
}

LabelSet LabelSet::without(const LabelSet& other) const {
    LabelSet rest;
    for (const Label label : labels_)
        if (!other.has(label)) rest.labels_.push_back(label);
    return rest;
}

int LabelSet::fit(const LabelSet& type) const {
    for (const Label label : labels_)
        if (!type.has(label)) return -1;
    for (const Label label : type.labels_)
        if (label.kind() == LabelKind::kBindingTag && !has(label)) return -1;
    return static_cast<int>(labels_.size());
}

std::string LabelSet::text() const {
    std::string text = "{";
    for (const Label label : labels_) text += (text.size() > 1 ? ", " : "") + label.text();
    return text + "}";
}

const LabelSet* best_fit(const std::vector<LabelSet>& sets, const Record& record) {
    const LabelSet* best = nullptr;
    int most = -1;
    for (const LabelSet& set : sets)
        if (const int fit = set.fit(record); fit > most) {
            most = fit;
            best = &set;
        }
    return best;
}

std::string text_of(const std::vector<LabelSet>& sets, std::string_view between) {
    std::string text;
    for (const LabelSet& set : sets) {
        if (!text.empty()) text += between;
        text += set.text();
    }
    return text;
}

bool matches(const Pattern& pattern, const LabelSet& labels, const Record& record) {
    return labels.fit(record) >= 0 && (!pattern.guard || evaluate(*pattern.guard, tags_of(record)) != 0);
}

void inherit_unused(Record& made, const Record& from, const LabelSet& used) {
    for (const auto& [label, value] : from.fields())
        if (!used.has(label) && !made.has(label)) made.set(label, value);
    for (const auto& [label, value] : from.tags())
        if (label.kind() == LabelKind::kTag && !used.has(label) && !made.has(label)) made.set(label, value);
    made.turn = from.turn;
    made.aside = from.aside;
    made.turns_back = from.turns_back;
}

std::function<int(Label)> tags_of(const Record& record) {
    return [&record](Label label) { return record.tag(label); };
}

}  // namespace heddle::streams
