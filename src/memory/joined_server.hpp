// The server of a process that was started with others: who they are says HEDDLE_RANK, or mpirun.
#pragma once

#include <memory>

#include "memory/server_state.hpp"

namespace heddle::memory {

/// Waits for the others. Throws Error as Server().
[[nodiscard]] std::unique_ptr<ServerState> make_server_of_environment();
/// As the options say. Throws Error as Server().
[[nodiscard]] std::unique_ptr<ServerState> make_server(const ServerOptions& options);

}  // namespace heddle::memory
