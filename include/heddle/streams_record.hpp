// Labels, values and records of networks of streams (heddle/streams.hpp).
//
//     using Line = heddle::snet::Field<"line", std::string>;
//     using Count = heddle::snet::Tag<"n">;
//     auto record = heddle::snet::record<Line, Count>("a line", 3);
//     record.get<Line>().size();
//
// A label is a type: its kind, its name, and of a field the C++ type of its value. The three kinds are name
// spaces of their own. Values are shared by the records that have them and never changed; one that only one
// record has can be taken out of it. A record belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "heddle/error.hpp"
#include "heddle/export.hpp"

namespace heddle::snet {

/// A field's value.
class HEDDLE_API FieldValue {
  public:
    FieldValue() = default;
    virtual ~FieldValue();
    FieldValue(const FieldValue&) = delete;
    FieldValue& operator=(const FieldValue&) = delete;
    /// Who can read it, as records of text have it: interface="C4SNet".
    [[nodiscard]] virtual std::string_view interface() const = 0;
    /// As records of text have it.
    [[nodiscard]] virtual std::string text() const = 0;
};
using FieldPointer = std::shared_ptr<const FieldValue>;

namespace detail {

/// The text of a label, as a template's argument.
template <size_t size>
struct Name {
    char text[size];
    consteval Name(const char (&literal)[size]) {  // NOLINT: a literal is one
        for (size_t i = 0; i < size; ++i) text[i] = literal[i];
    }
    [[nodiscard]] constexpr std::string_view view() const { return {text, size - 1}; }
    [[nodiscard]] consteval bool is_identifier() const {
        if (size < 2 || (text[0] >= '0' && text[0] <= '9')) return false;
        for (const char c : view())
            if (c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z'))
                return false;
        return true;
    }
};

enum class LabelKind : uint8_t { kField, kTag, kBindingTag };

inline std::string bracketed(std::string_view open, std::string_view name) {
    std::string text(open);
    text.append(name).append(">");
    return text;
}

/// The number that the process knows a label by.
[[nodiscard]] HEDDLE_API uint32_t label_code(LabelKind kind, std::string_view name);
template <class Label>
uint32_t code_of() {
    static const uint32_t code = label_code(Label::kKind, Label::name());
    return code;
}

/// Memory that one thread takes and another gives back, as records do all the time. Throws std::bad_alloc.
[[nodiscard]] HEDDLE_API void* allocate_block(size_t size);
HEDDLE_API void free_block(void* memory, size_t size) noexcept;
template <class T>
struct BlockAllocator {
    using value_type = T;
    BlockAllocator() = default;
    template <class Other>
    BlockAllocator(const BlockAllocator<Other>& /*same*/) noexcept {}  // NOLINT: as allocators are made
    static T* allocate(size_t count) {
        static_assert(alignof(T) <= 16);
        return static_cast<T*>(allocate_block(count * sizeof(T)));
    }
    static void deallocate(T* memory, size_t count) noexcept { free_block(memory, count * sizeof(T)); }
    friend bool operator==(BlockAllocator, BlockAllocator) { return true; }
};

[[nodiscard]] HEDDLE_API std::string type_name(const std::type_info& type);
/// "(its type)": for values that no text stands for.
[[nodiscard]] HEDDLE_API std::string text_of_object(const std::type_info& type);
[[noreturn]] HEDDLE_API void fail_type(std::string_view label, const FieldValue* found,
                                       const std::type_info& wanted);
[[noreturn]] HEDDLE_API void fail_shared(std::string_view label, const std::type_info& type);

/// A value of C++.
template <class T>
class Typed final : public FieldValue {
  public:
    explicit Typed(T its_value) : value(std::move(its_value)) {}
    [[nodiscard]] std::string_view interface() const override { return "C++"; }
    [[nodiscard]] std::string text() const override {
        if constexpr (std::is_convertible_v<const T&, std::string>)
            return value;
        else if constexpr (std::is_arithmetic_v<T>)
            return std::to_string(value);
        else
            return text_of_object(typeid(T));
    }
    mutable T value;  ///< changed by its only owner
};

/// Throws kInvalidArgument where it is of another type.
template <class T>
const Typed<T>& typed(const FieldPointer& value, std::string_view label) {
    const FieldValue* const found = value.get();
    if (found == nullptr || typeid(*found) != typeid(Typed<T>)) fail_type(label, found, typeid(T));
    return static_cast<const Typed<T>&>(*found);
}

template <class T>
FieldPointer make_field(T value) {
    if constexpr (alignof(T) <= 16)
        return std::allocate_shared<Typed<T>>(BlockAllocator<Typed<T>>(), std::move(value));
    else
        return std::make_shared<Typed<T>>(std::move(value));
}

/// Nobody else has it, or will: whoever had it before is done with it.
[[nodiscard]] HEDDLE_API bool has_sole_owner(const FieldPointer& value) noexcept;

/// Moved where nobody else has it, else copied; throws kInvalidArgument where it cannot be.
template <class T>
T taken(FieldPointer&& value, std::string_view label) {
    const Typed<T>& held = typed<T>(value, label);
    if (has_sole_owner(value)) return std::move(held.value);
    if constexpr (std::is_copy_constructible_v<T>)
        return held.value;
    else
        fail_shared(label, typeid(T));
}

/// Where it lies: itself where nobody else has it, else a copy that `value` is from then on; throws as
/// taken().
template <class T>
T&& lent(FieldPointer& value, std::string_view label) {
    const Typed<T>& held = typed<T>(value, label);
    if (has_sole_owner(value)) return std::move(held.value);
    if constexpr (std::is_copy_constructible_v<T>)
        value = make_field<T>(held.value);
    else
        fail_shared(label, typeid(T));
    return std::move(static_cast<const Typed<T>&>(*value).value);
}

}  // namespace detail

/// The label of a field that holds a T, any type that can be moved.
template <detail::Name label, class T>
struct Field {
    static_assert(label.is_identifier(), "a label is letters, digits and _, and begins with no digit");
    static_assert(std::is_same_v<T, std::decay_t<T>> && std::is_move_constructible_v<T>,
                  "a field holds a type that can be moved");
    using Type = T;
    static constexpr auto kKind = detail::LabelKind::kField;
    static constexpr std::string_view name() { return label.view(); }
    static std::string text() { return std::string(name()); }
};

/// The label of a tag: an int, which networks can compute with.
template <detail::Name label>
struct Tag {
    static_assert(label.is_identifier(), "a label is letters, digits and _, and begins with no digit");
    using Type = int;
    static constexpr auto kKind = detail::LabelKind::kTag;
    static constexpr std::string_view name() { return label.view(); }
    static std::string text() { return detail::bracketed("<", name()); }
};

/// The label of a binding tag: no part takes a record with one that it does not name.
template <detail::Name label>
struct BindingTag {
    static_assert(label.is_identifier(), "a label is letters, digits and _, and begins with no digit");
    using Type = int;
    static constexpr auto kKind = detail::LabelKind::kBindingTag;
    static constexpr std::string_view name() { return label.view(); }
    static std::string text() { return detail::bracketed("<#", name()); }
};

class HEDDLE_API Record {
  public:
    Record() noexcept;
    /// The values are shared.
    Record(const Record&);
    Record(Record&&) noexcept;
    Record& operator=(Record other) noexcept;
    ~Record();

    template <class Label>
    [[nodiscard]] bool has() const {
        return Label::kKind == detail::LabelKind::kField ? field(detail::code_of<Label>()) != nullptr
                                                         : tag(detail::code_of<Label>()) != nullptr;
    }
    /// An int, or a reference that is good until the record is changed. Throws kInvalidArgument where there
    /// is none, or one of another type.
    template <class Label>
    [[nodiscard]] decltype(auto) get() const {
        if constexpr (Label::kKind == detail::LabelKind::kField) {
            const FieldPointer* const found = field(detail::code_of<Label>());
            if (found == nullptr) fail_missing(Label::text());
            return (detail::typed<typename Label::Type>(*found, Label::name()).value);
        } else {
            const int* const found = tag(detail::code_of<Label>());
            if (found == nullptr) fail_missing(Label::text());
            return static_cast<int>(*found);
        }
    }
    /// Takes a field's value out: moved where no other record has it, else copied. Throws as get(), and where
    /// it can be neither.
    template <class Label>
    [[nodiscard]] typename Label::Type take() {
        static_assert(Label::kKind == detail::LabelKind::kField, "a tag is read by get()");
        return detail::taken<typename Label::Type>(take_field(detail::code_of<Label>(), Label::text()),
                                                   Label::name());
    }
    /// One with this label is replaced.
    template <class Label>
    Record& set(typename Label::Type value) {
        if constexpr (Label::kKind == detail::LabelKind::kField)
            set_field(detail::code_of<Label>(), detail::make_field<typename Label::Type>(std::move(value)));
        else
            set_tag(detail::code_of<Label>(), value);
        return *this;
    }
    template <class Label>
    void remove() {
        remove(detail::code_of<Label>());
    }
    /// "{a, <t=3>}": for messages.
    [[nodiscard]] std::string text() const;

    // For the library's own layers, and labels whose names are found out at run time.

    /// Null: it is not there.
    [[nodiscard]] const FieldPointer* field(uint32_t code) const;
    [[nodiscard]] const int* tag(uint32_t code) const;
    void set_field(uint32_t code, FieldPointer value);
    void set_tag(uint32_t code, int value);
    void remove(uint32_t code);
    /// What it is made of, which the layers below have a type for.
    [[nodiscard]] void* parts() { return parts_; }
    [[nodiscard]] const void* parts() const { return parts_; }

  private:
    FieldPointer take_field(uint32_t code, const std::string& label);
    [[noreturn]] void fail_missing(const std::string& label) const;

    static constexpr size_t kSize = 72;
    alignas(8) std::byte parts_[kSize];
};

/// One with these labels, and their values in the same order.
template <class... Labels>
[[nodiscard]] Record record(typename Labels::Type... values) {
    Record made;
    (made.set<Labels>(std::move(values)), ...);
    return made;
}

}  // namespace heddle::snet
