// BoxCompiler: makes a shared object of a program's boxes that are there as C or C++.
//
// What a file defines is held against the boxes that the program declares: the compiler knows each of them as
// C4SNet.h wants it, and tells of another one where it is defined and where the box is declared.
#pragma once

#include <string>

#include "base/temporary_folder.hpp"
#include "streams/syntax.hpp"

namespace heddle::tool {

/// "c4snet_data_t*,int": what a box's function takes behind the handle, in C.
[[nodiscard]] std::string parameters_of(const streams::BoxDefinition& box);

/// Throws kBadInput, at its place, for a box in line in another language than C.
void check_languages(const streams::Program& program);

/// For one thread. What it has made goes with it.
class BoxCompiler {
  public:
    explicit BoxCompiler(const streams::Program& program);

    [[nodiscard]] static bool compiles(const std::string& file);
    /// The path of what is made of it. Throws kBadInput with the compiler's words.
    [[nodiscard]] std::string compile(const std::string& file);
    /// The same of the boxes in line. Empty: there are none.
    [[nodiscard]] std::string compile_in_line();

  private:
    [[nodiscard]] std::string compile(const std::string& file, const std::string& called,
                                      const std::string& first);

    const streams::Program& program_;
    TemporaryFolder folder_{"/tmp/heddle-boxes-"};
    int count_ = 0;
};

}  // namespace heddle::tool
