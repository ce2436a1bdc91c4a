// What `heddle memory` asks a memory server that runs already.
#pragma once

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "command.hpp"
#include "heddle/error.hpp"

namespace heddle::tool {

/// As `heddle memory status --json` prints it, of the server that listens there; an empty socket: the usual
/// one. Throws ServiceAbsent, Error.
[[nodiscard]] std::string memory_status_text(const std::string& socket);

/// Throws ServiceAbsent where the server is not there, or goes meanwhile. A file that may not grow is told as
/// an error from then on, and ends nothing.
template <class Questions>
void ask_memory_server(Questions&& questions) {
    std::signal(SIGXFSZ, SIG_IGN);
    try {
        questions();
    } catch (const Error& error) {
        if (error.code() == ErrorCode::kUnavailable) throw ServiceAbsent(error.what());
        throw;
    }
}

/// A number in a row of it; 0 where it is not there.
[[nodiscard]] inline uint64_t status_number(const nlohmann::json& row, const char* name) {
    return row.value(name, uint64_t{0});
}

}  // namespace heddle::tool
