// What the arbiter is told of a program of streams: its name, and how many CPUs it takes.
#pragma once

#include <string>

namespace heddle::tool {

/// Before the process has workers. Variables that the user has set win. `min` CPUs at least, `max` at most;
/// 0: no limit. Throws kBadInput where min is above max.
void announce_streams(const std::string& program, int min, int max);

/// The process's CPUs are those that a resource server of S-Net at PORT or HOST:PORT grants, for as long as
/// it lives, and no arbiter is asked. Before the process has workers. Throws what ResservLink throws.
void join_resource_server(const std::string& place);

}  // namespace heddle::tool
