// Where the ranks of one machine find each other's sockets.
#pragma once

#include <string>

#include "base/session_folder.h"

namespace heddle::memory {

/// Begins the name of the folder: in the session's where there is one.
[[nodiscard]] inline std::string meeting_place() {
    char usual[HEDDLE_SESSION_FOLDER_BYTES];
    const char* const session = heddle_session_folder(usual);
    return std::string(session != nullptr ? session : "/tmp") + "/heddle-mesh-";
}

}  // namespace heddle::memory
