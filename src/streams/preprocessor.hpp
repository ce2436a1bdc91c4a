// What the C preprocessor makes of a program.
#pragma once

#include <string>
#include <string_view>

namespace heddle::streams {

/// What an `#include` line in the code of a box becomes: it is for the code's compiler.
inline constexpr std::string_view kIncludeOfCode = "#pragma heddle include";

/// The text of the file as `cpp` gives it, with its lines that tell where what follows was; as it is where no
/// line is for the preprocessor. Throws kBadInput with what cpp says.
[[nodiscard]] std::string preprocessed(const std::string& path, std::string text);

}  // namespace heddle::streams
