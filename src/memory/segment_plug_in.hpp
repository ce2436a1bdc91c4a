// Kinds of segments that are plug-ins, libheddle-segment-NAME.so, with an extern "C" function
// heddle_segment() that returns a SegmentPlugIn. A plug-in needs nothing of libheddle.so but headers, and
// compiles in segment_plan.cpp.
#pragma once

#include <optional>

#include "memory/segment.hpp"
#include "memory/transport.hpp"

namespace heddle::memory {

/// The processes that the plug-in's runtime has started together (mpirun). All of them call each function,
/// in the same order; one thread each.
class RankGroup {
  public:
    virtual ~RankGroup() = default;
    [[nodiscard]] virtual Rank rank() const = 0;
    [[nodiscard]] virtual Rank ranks() const = 0;
    [[nodiscard]] virtual bool on_one_machine() const = 0;
    /// On all what rank 0 gave.
    [[nodiscard]] virtual std::string share(const std::string& text) = 0;
    /// For ranks that no socket joins.
    [[nodiscard]] virtual std::unique_ptr<Transport> transport() = 0;
};

struct SegmentPlugIn {
    SegmentKind kind;
    std::string (*version)();
    /// The process's own group: of all ranks, or of a communicator as ServerOptions has it. `program_has_it`:
    /// the runtime is a part of the program, which starts and ends it. Throws Error kUnavailable,
    /// kInvalidArgument.
    std::unique_ptr<RankGroup> (*ranks)(bool program_has_it, std::optional<int> communicator);
    /// Makes the runtime ready for this process. Throws as ranks().
    void (*start)(bool program_has_it);
};

/// The group of whoever has started this process with several ranks, or null. Throws Error kUnavailable where
/// its plug-in is not there, and as SegmentPlugIn::ranks.
[[nodiscard]] std::unique_ptr<RankGroup> ranks_of_launcher();

/// The plug-in of kind mpi, for the MPI that this process has, was started by, or can have. Throws
/// kUnavailable, kBadInput.
[[nodiscard]] const SegmentPlugIn& mpi_plug_in();
/// Throws kUnavailable.
[[nodiscard]] const SegmentPlugIn& gaspi_plug_in();
/// MPI is a part of the program.
[[nodiscard]] bool program_has_mpi();

}  // namespace heddle::memory
