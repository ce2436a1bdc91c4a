// The engines that a command line names: which they are, and whether they can be used, before any is.
//
// For commands; one thread.
#pragma once

#include <string>
#include <vector>

namespace heddle::tool {

/// "native,tbb" taken apart. Throws UsageError where there is nothing before or behind a comma.
[[nodiscard]] std::vector<std::string> split_engines(const std::vector<std::string>& lists);
/// Throws UsageError for a name that no engine has, and kUnavailable for an engine whose library is missing.
void check_engines(const std::vector<std::string>& names);

}  // namespace heddle::tool
