// How often the boxes of a program are called at once, as the command line says it: "16D 3:foo,bar".
#pragma once

#include <map>
#include <string>

#include "streams/box.hpp"
#include "streams/syntax.hpp"

namespace heddle::tool {

/// Words, each a number, "D" behind it where order is kept, and the names of the boxes that it is for;
/// without names it is for all others.
class SnetCalls {
  public:
    /// Throws kBadInput for words that are none.
    explicit SnetCalls(const std::string& text);
    [[nodiscard]] streams::BoxCalls of(const streams::BoxDefinition& box) const;
    /// Throws kBadInput for a name that none of the program's boxes has.
    void check(const streams::Program& program) const;

  private:
    streams::BoxCalls others_;
    std::map<std::string, streams::BoxCalls> named_;
};

}  // namespace heddle::tool
