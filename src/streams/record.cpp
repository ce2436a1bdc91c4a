#include "streams/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace heddle::streams {
namespace {

template <class Values>
auto at(Values& values, Label label) {
    return std::find_if(values.begin(), values.end(),
                        [&](const auto& value) { return value.first == label; });
}

}  // namespace

AsideReference::AsideReference(const AsideReference& other) : aside_(other.aside_) {
    if (aside_ != nullptr) aside_->references.fetch_add(1, std::memory_order_relaxed);
}

void AsideReference::release() noexcept {
    // Acquire and release: whoever deletes it has seen what the others did with it. With the last of it may
    // go what is around it, and so on: in a loop, since nets may be nested more deeply than the stack is.
    while (aside_ != nullptr && aside_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const PutAside* const last = aside_;
        aside_ = std::exchange(last->outer.aside_, nullptr);
        delete last;
    }
    aside_ = nullptr;
}

const Field& Record::field(Label label) const {
    return at(fields_, label)->second;
}
int Record::tag(Label label) const {
    return at(tags_, label)->second;
}

void Record::remove(Label label) {
    if (label.kind() == LabelKind::kField) {
        if (const auto found = at(fields_, label); found != fields_.end()) fields_.erase(found);
    } else if (const auto found = at(tags_, label); found != tags_.end()) {
        tags_.erase(found);
    }
}

Field Record::take_field(Label label) {
    const auto found = at(fields_, label);
    Field value = std::move(found->second);
    fields_.erase(found);
    return value;
}

void Record::inherit(const Record& from) {
    for (const auto& [label, value] : from.fields_)
        if (!has(label)) fields_.emplace_back(label, value);
    for (const auto& [label, value] : from.tags_)
        if (label.kind() == LabelKind::kTag && !has(label)) tags_.emplace_back(label, value);
}

bool Record::take_back() {
    const AsideReference inner = std::move(aside);
    if (!inner) return false;
    inherit(inner->labels);
    aside = inner->outer;
    return true;
}

std::string Record::text() const {
    constexpr size_t kMost = 1'000;
    std::string text = "{";
    size_t left_out = 0;
    const auto add = [&](const std::string& one) {
        if (text.size() < kMost)
            text += (text.size() > 1 ? ", " : "") + one;
        else
            ++left_out;
    };
    for (const auto& [label, value] : fields_) add(label.name());
    for (const auto& [label, value] : tags_)
        add(fmt::format("<{}{}={}>", label.kind() == LabelKind::kBindingTag ? "#" : "", label.name(), value));
    return text + (left_out == 0 ? "}" : fmt::format(", and {} more}}", left_out));
}

}  // namespace heddle::streams
