// LabelSet: what a record must have to go somewhere, and how well it fits.
//
// Values; any thread may read.
#pragma once

#include <string>
#include <vector>

#include "streams/record.hpp"
#include "streams/syntax.hpp"

namespace heddle::streams {

class LabelSet {
  public:
    LabelSet() = default;
    explicit LabelSet(const Variant& variant);

    [[nodiscard]] const std::vector<Label>& labels() const { return labels_; }
    [[nodiscard]] bool has(Label label) const;
    void add(Label label);
    void add(const LabelSet& other);
    /// Those that `other` has not.
    [[nodiscard]] LabelSet without(const LabelSet& other) const;

    /// How many labels match; -1: the record does not fit. All that the set has must be there, and the set
    /// must have all binding tags of the record.
    [[nodiscard]] int fit(const Record& record) const {
        for (const Label label : labels_)
            if (!record.has(label)) return -1;
        for (const auto& [label, value] : record.tags())
            if (label.kind() == LabelKind::kBindingTag && !has(label)) return -1;
        return static_cast<int>(labels_.size());
    }
    /// Its labels are all that the record has.
    [[nodiscard]] bool has_all_of(const Record& record) const {
        for (const auto& [label, value] : record.fields())
            if (!has(label)) return false;
        for (const auto& [label, value] : record.tags())
            if (!has(label)) return false;
        return true;
    }
    /// The same for all records of a type, as far as the type tells.
    [[nodiscard]] int fit(const LabelSet& type) const;

    /// "{a, <t>}".
    [[nodiscard]] std::string text() const;
    friend bool operator==(const LabelSet&, const LabelSet&) = default;

  private:
    std::vector<Label> labels_;  // sorted
};

/// The one that fits best; ties go to the first. Null: none fits.
[[nodiscard]] const LabelSet* best_fit(const std::vector<LabelSet>& sets, const Record& record);

/// Of branches with what each takes, the one whose set fits best. Null: none does.
template <class Branch>
[[nodiscard]] const Branch* best_branch(const std::vector<Branch>& branches, const Record& record) {
    const Branch* best = nullptr;
    int most = -1;
    for (const Branch& branch : branches)
        for (const LabelSet& set : branch.takes)
            if (const int fit = set.fit(record); fit > most) {
                most = fit;
                best = &branch;
            }
    return best;
}

/// "{a} or {b, <t>}".
[[nodiscard]] std::string text_of(const std::vector<LabelSet>& sets, std::string_view between = " or ");

/// Whether the guard holds, too. Throws kBadInput as evaluate() does.
[[nodiscard]] bool matches(const Pattern& pattern, const LabelSet& labels, const Record& record);

/// Flow inheritance: `made` of `from` by a part that uses up `used` gets the rest, unless it has the label,
/// or it is a binding tag; and its turn, and what waits for it at borders.
void inherit_unused(Record& made, const Record& from, const LabelSet& used);

/// The value of a tag that the record has.
[[nodiscard]] std::function<int(Label)> tags_of(const Record& record);

}  // namespace heddle::streams
