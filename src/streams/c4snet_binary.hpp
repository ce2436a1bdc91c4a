// Data of C boxes in the binary form of records: base64 of the kind (value or array), the number of elements,
// the type and the elements (S-Net run-time system), of a machine with the same byte order and sizes.
#pragma once

#include <string>
#include <string_view>

#include "heddle/compat/C4SNet.h"

namespace heddle::streams {

/// Throws kLimit for more elements than an int counts.
[[nodiscard]] std::string c4snet_binary(c4snet_type_t type, size_t size, const void* elements);
/// With one reference. Throws kBadInput where it is none.
[[nodiscard]] c4snet_data_t* read_c4snet_binary(std::string_view text);

}  // namespace heddle::streams
