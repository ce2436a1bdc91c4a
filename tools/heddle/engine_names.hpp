// check_engines: whether the engines that a command line names can be used, before any is.
//
// For commands; one thread.
#pragma once

#include <string>
#include <vector>

namespace heddle::tool {

/// Throws UsageError for a name that no engine has, and kUnavailable for an engine whose library is missing.
void check_engines(const std::vector<std::string>& names);

}  // namespace heddle::tool
