// SnetBoxes: the C functions of a program's boxes: from shared objects, from files of C or C++, which are
// compiled (BoxCompiler), and from code in the program itself.
#pragma once

#include <string>
#include <vector>

#include "streams/box.hpp"
#include "streams/syntax.hpp"

namespace heddle::tool {

class SnetBoxes {
  public:
    /// Throws kBadInput for a file that cannot be loaded or compiled, with the compiler's words.
    SnetBoxes(const streams::Program& program, const std::vector<std::string>& files);
    ~SnetBoxes();
    SnetBoxes(const SnetBoxes&) = delete;
    SnetBoxes& operator=(const SnetBoxes&) = delete;

    /// Throws kBadInput where no file or more than one has it, or it takes something else than the box, as
    /// its file says. The function is good while this lives.
    [[nodiscard]] streams::BoxFunction find(const streams::BoxDefinition& box) const;

  private:
    void load(const std::string& file, const std::string& called);

    std::vector<void*> libraries_;
    std::vector<std::string> names_;
};

}  // namespace heddle::tool
