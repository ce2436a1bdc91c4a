// Where the ranks of one machine find each other's sockets.
#pragma once

#include <cstdlib>
#include <string>

namespace heddle::memory {

/// Begins the name of the folder: in XDG_RUNTIME_DIR where there is one.
[[nodiscard]] inline std::string meeting_place() {
    const char* const runtime = ::secure_getenv("XDG_RUNTIME_DIR");
    return std::string(runtime != nullptr && *runtime != '\0' ? runtime : "/tmp") + "/heddle-mesh-";
}

}  // namespace heddle::memory
