// Record: what flows through a network: fields, whose values only boxes look into, and tags, which are ints.
//
// A record belongs to one thread at a time and is moved; its values may be shared and are never changed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/streams_record.hpp"
#include "streams/labels.hpp"
#include "streams/turns.hpp"

namespace heddle::streams {

using FieldValue = snet::FieldValue;
using Field = snet::FieldPointer;

/// One that nobody has looked into since it was read.
class TextField final : public FieldValue {
  public:
    TextField(std::string interface, std::string text)
        : interface_(std::move(interface)), text_(std::move(text)) {}
    [[nodiscard]] std::string_view interface() const override { return interface_; }
    [[nodiscard]] std::string text() const override { return text_; }

  private:
    std::string interface_, text_;
};

/// Labels of a record that a net does not know of: they wait at its border.
struct PutAside;

/// Shares one; it goes with the last. Any thread, one at a time.
class AsideReference {
  public:
    AsideReference() = default;
    /// Of one with a reference more.
    explicit AsideReference(const PutAside* aside) : aside_(aside) {}
    AsideReference(const AsideReference& other);
    AsideReference(AsideReference&& other) noexcept : aside_(std::exchange(other.aside_, nullptr)) {}
    AsideReference& operator=(AsideReference other) noexcept {
        std::swap(aside_, other.aside_);
        return *this;
    }
    ~AsideReference() {
        if (aside_ != nullptr) release();
    }
    explicit operator bool() const { return aside_ != nullptr; }
    const PutAside* operator->() const { return aside_; }

  private:
    void release() noexcept;
    const PutAside* aside_ = nullptr;
};

class Record {
  public:
    template <class Value>
    using Labelled =
        std::vector<std::pair<Label, Value>, snet::detail::BlockAllocator<std::pair<Label, Value>>>;
    [[nodiscard]] const Labelled<Field>& fields() const { return fields_; }
    [[nodiscard]] const Labelled<int>& tags() const { return tags_; }

    [[nodiscard]] bool empty() const { return fields_.empty() && tags_.empty(); }
    /// As a new one. One that was moved from has hardly anything to do.
    void reset() noexcept {
        if (turn) turn = {};
        if (aside) aside = {};
        turns_back = 0;
        if (fields_.capacity() > 0) Labelled<Field>().swap(fields_);
        if (tags_.capacity() > 0) Labelled<int>().swap(tags_);
    }
    [[nodiscard]] bool has(Label label) const {
        return label.kind() == LabelKind::kField ? find_field(label) != nullptr : find_tag(label) != nullptr;
    }
    /// Of a field that is there.
    [[nodiscard]] const Field& field(Label label) const;
    /// Of a tag that is there.
    [[nodiscard]] int tag(Label label) const;
    /// Null: it is not there.
    [[nodiscard]] const Field* find_field(Label label) const { return find(fields_, label); }
    [[nodiscard]] const int* find_tag(Label label) const { return find(tags_, label); }

    /// One with this label is replaced.
    void set(Label label, Field value) { replace(fields_, label, std::move(value)); }
    void set(Label label, int value) { replace(tags_, label, std::move(value)); }
    void remove(Label label);
    void remove_labels() {
        fields_.clear();
        tags_.clear();
    }
    /// Of a field that is there; it is removed.
    [[nodiscard]] Field take_field(Label label);
    /// The same, and its place stays for a value with this label: drop_lent() is to follow.
    [[nodiscard]] Field lend_field(Label label) {
        return std::move(std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) {
                             return field.first == label;
                         })->second);
    }
    /// The places that nothing has come back to.
    void drop_lent() {
        std::erase_if(fields_, [](const auto& field) { return field.second == nullptr; });
    }
    /// What `from` has and this has not; binding tags never.
    void inherit(const Record& from);
    /// The same, moved, but for labels that `used` has.
    template <class Labels>
    void inherit(Record&& from, const Labels& used) {
        for (auto& [label, value] : from.fields_)
            if (!used.has(label) && !has(label)) fields_.emplace_back(label, std::move(value));
        for (const auto& [label, value] : from.tags_)
            if (label.kind() == LabelKind::kTag && !used.has(label) && !has(label))
                tags_.emplace_back(label, value);
    }
    void swap_labels(Record& other) noexcept {
        fields_.swap(other.fields_);
        tags_.swap(other.tags_);
    }
    /// What waits at the innermost border comes back. False: nothing waits at any.
    bool take_back();

    /// "{a, <t=3>}": for messages, of many labels the first.
    [[nodiscard]] std::string text() const;

    /// Whose turn its descendants take where order is kept; null where it is not.
    TurnReference turn;
    /// Innermost net first; null: nothing.
    AsideReference aside;
    /// How often it, or what it comes of, has gone back in feedbacks.
    uint32_t turns_back = 0;

  private:
    template <class Value>
    static const Value* find(const Labelled<Value>& values, Label label) {
        for (const auto& [its_label, value] : values)
            if (its_label == label) return &value;
        return nullptr;
    }
    template <class Value>
    static void replace(Labelled<Value>& values, Label label, Value&& value) {
        for (auto& [its_label, its_value] : values)
            if (its_label == label) {
                its_value = std::move(value);
                return;
            }
        values.emplace_back(label, std::move(value));
    }

    Labelled<Field> fields_;
    Labelled<int> tags_;
};

struct PutAside {
    PutAside(Record its_labels, AsideReference its_outer)
        : labels(std::move(its_labels)), outer(std::move(its_outer)) {}
    Record labels;
    mutable AsideReference outer;
    mutable std::atomic<uint32_t> references{1};
};

}  // namespace heddle::streams
