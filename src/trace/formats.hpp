// The trace formats of other tools that a Timeline can be written in, one file each.
//
// Functions without state, each writes a whole document. Trouble with the stream is the caller's to see (its
// state). Times keep their nanoseconds in every format.
#pragma once

#include <iosfwd>
#include <string>

#include "trace/timeline.hpp"

namespace heddle::trace {

/// The Trace Event format (JSON) of chrome://tracing and Perfetto: a track for each CPU with slices named
/// after the clients, for each client counters of held, demanded and awaited CPUs and a track for each of its
/// workers.
void write_chrome(const Timeline& timeline, std::ostream& out);

/// Paje, as pajeng and ViTE read it: a container for each CPU with the client as its state, and for each
/// client with variables and a container for each of its workers.
void write_paje(const Timeline& timeline, std::ostream& out);

/// Paraver's three files: records, names of values, names of rows. Application 1 is the machine, with a
/// thread for each CPU; then an application for each client: task 1 has a thread for each CPU that it ever
/// used, task 2 one for each of its workers. Work that took no time is left out.
struct Paraver {
    std::ostream& prv;
    std::ostream& pcf;
    std::ostream& row;
};
void write_paraver(const Timeline& timeline, const Paraver& out);

}  // namespace heddle::trace
