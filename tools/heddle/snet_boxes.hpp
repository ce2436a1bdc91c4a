// SnetBoxes: the C functions of a program's boxes: from shared objects, from C files, which are compiled, and
// from code in the program itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "streams/box.hpp"
#include "streams/syntax.hpp"

namespace heddle::tool {

class SnetBoxes {
  public:
    /// Files that end in ".c" are compiled with `cc`. Throws kBadInput for one that cannot be loaded or
    /// compiled, with the compiler's words.
    SnetBoxes(const streams::Program& program, const std::vector<std::string>& files);
    ~SnetBoxes();
    SnetBoxes(const SnetBoxes&) = delete;
    SnetBoxes& operator=(const SnetBoxes&) = delete;

    /// Throws kBadInput where no file has it. The function is good while this lives.
    [[nodiscard]] streams::BoxFunction find(const streams::BoxDefinition& box) const;

  private:
    void load(const std::string& file);
    void compile(const std::string& source, const std::string& called);
    void compile_in_line(const streams::Program& program, const std::string& text);

    std::unique_ptr<TemporaryFolder> folder_;  // for what is compiled, until it is loaded
    std::vector<void*> libraries_;
    std::vector<std::string> names_;
};

}  // namespace heddle::tool
