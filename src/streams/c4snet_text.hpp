// Data of C boxes as text: "(int)5", "(char[5])h,e,l,l,o", "(double[2])1.5,2" (S-Net run-time system).
#pragma once

#include <string>
#include <string_view>

#include "heddle/compat/C4SNet.h"

namespace heddle::streams {

/// Of one element, in bytes; 0 for what is no type.
[[nodiscard]] size_t c4snet_size(c4snet_type_t type);
/// Floating-point numbers in the shortest form that reads back as the same.
[[nodiscard]] std::string c4snet_text(c4snet_type_t type, size_t size, const void* elements);
/// With one reference. Throws kBadInput where it is none, or an element does not fit its type.
[[nodiscard]] c4snet_data_t* read_c4snet_text(std::string_view text);

}  // namespace heddle::streams
