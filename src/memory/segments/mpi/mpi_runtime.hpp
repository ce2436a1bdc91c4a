// MPI as the plug-in uses it: begun with all threads allowed to call it, on communicators of its own, with
// errors that are thrown.
//
// Where the program has MPI, it begins and ends it. Else this does, at the end of the process: but not where
// that fails, so that its mpirun ends the other ranks rather than that they wait for each other.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "heddle/error.hpp"
#include "heddle/memory_types.hpp"

namespace heddle::memory {

/// Throws kInvalidArgument where MPI is not begun by a program that has it, or was ended, or allows too few
/// threads; kUnavailable where this MPI cannot do better. Any thread.
void start_mpi(bool program_has_it);

/// Throws kSystem, with MPI's words, for another code than MPI_SUCCESS.
void check_mpi(int code, const std::string& what);

/// A communicator like another one, with messages of its own. Made and ended by all ranks together.
class Communicator {
  public:
    explicit Communicator(MPI_Comm like);
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    [[nodiscard]] MPI_Comm get() const noexcept { return own_; }
    [[nodiscard]] Rank rank() const;
    [[nodiscard]] Rank ranks() const;
    /// How many of them are on this machine. Called by all.
    [[nodiscard]] Rank ranks_of_machine() const;
    /// On all what `root` gave.
    [[nodiscard]] std::string share(const std::string& text, int root) const;
    /// On all what the first rank that has a problem gave; nothing where none has.
    [[nodiscard]] std::string first_problem(const std::string& problem) const;

  private:
    MPI_Comm own_ = MPI_COMM_NULL;
};

/// From now on the ranks are the processes of this communicator, by its Fortran handle; without one all of
/// the program. Called by all of them, while none has a server. What it takes of MPI, once for each group of
/// processes, stays until MPI ends. Throws kInvalidArgument for one that is none.
void use_communicator(std::optional<int> communicator);
/// All ranks; what changes the segments of all ranks uses it, one change after the other.
[[nodiscard]] const Communicator& communicator_of_changes();
/// The same processes; what makes servers uses it.
[[nodiscard]] const Communicator& communicator_of_servers();

/// Of windows of that kind among these ranks: nothing where they have not tried.
[[nodiscard]] std::optional<std::string>& known_problem_of_windows(int kind);

[[nodiscard]] bool mpi_is_running();

}  // namespace heddle::memory
