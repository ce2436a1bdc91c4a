// Packets as messages of MPI, for ranks that are on several machines. Made by all ranks together.
//
// MPI ends all ranks where one dies, so that none is ever told to be lost but by its going in order.
#pragma once

#include <memory>

#include "memory/transport.hpp"

namespace heddle::memory {

[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport();

}  // namespace heddle::memory
