// Label: the name of a field, a tag or a binding tag, as a number.
//
// The three kinds are name spaces of their own. Numbers hold within the process; names are never forgotten.
// Any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::streams {

/// Letters, digits and '_', and no digit first.
[[nodiscard]] bool is_label_name(std::string_view name);

enum class LabelKind : uint8_t { kField, kTag, kBindingTag };

class Label {
  public:
    Label() = default;
    Label(LabelKind kind, std::string_view name);
    /// The one with this code().
    [[nodiscard]] static Label of(uint32_t code) {
        Label label;
        label.code_ = code;
        return label;
    }
    [[nodiscard]] uint32_t code() const { return code_; }

    [[nodiscard]] LabelKind kind() const { return static_cast<LabelKind>(code_ & 3); }
    [[nodiscard]] const std::string& name() const;
    /// As S-Net writes it: "a", "<t>" or "<#b>".
    [[nodiscard]] std::string text() const;
    friend auto operator<=>(Label, Label) = default;

  private:
    uint32_t code_ = 0;  ///< the number of the name, and the kind in the two low bits
};

}  // namespace heddle::streams
