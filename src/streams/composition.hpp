// What a Net of heddle/streams.hpp is: an S-Net program in pieces, and the functions of its boxes.
//
// Immutable; shared by the nets that are composed of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/streams.hpp"
#include "streams/syntax.hpp"

namespace heddle::snet::detail {

struct ComposedBox {
    std::string name, signature;
    std::vector<LabelType> types;
    std::function<void(BoxCall&)> function;
    BoxOptions options;
};

/// A definition of a net with a signature; those that it uses stand before it.
struct ComposedNet {
    std::string name, text;
};

struct NetParts {
    std::string topology;          ///< in parentheses, or one word
    std::string_view joined_by{};  ///< the combinator, within parentheses that a longer one does without
    std::map<std::string, std::shared_ptr<const ComposedBox>> boxes;
    std::vector<std::shared_ptr<const ComposedNet>> nets;
    /// Of each field: its type, and the box that says so.
    std::map<std::string, std::pair<const std::type_info*, std::string>> types;

    /// The program.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::unique_ptr<streams::Program> program() const;
};

}  // namespace heddle::snet::detail
