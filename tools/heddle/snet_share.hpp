// What the arbiter is told of a program of streams: its name, and how many CPUs it takes.
#pragma once

#include <string>

namespace heddle::tool {

/// Before the process has workers. Variables that the user has set win. `min` CPUs at least, `max` at most;
/// 0: no limit. Throws kBadInput where min is above max.
void announce_streams(const std::string& program, int min, int max);

}  // namespace heddle::tool
