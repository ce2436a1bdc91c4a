// Compiled into plug-ins, too.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "memory/segment.hpp"

namespace heddle::memory {

std::string SegmentPlan::option(const std::string& name) const {
    const auto found = options.find(name);
    if (found == options.end() || found->second.empty())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a segment of this kind needs the option \"{}\"", name));
    return found->second;
}

std::string SegmentPlan::option(const std::string& name, const std::vector<std::string>& words) const {
    const auto found = options.find(name);
    if (found == options.end()) return words.front();
    if (std::ranges::find(words, found->second) == words.end())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the option \"{}\" of a segment is \"{}\": it is to be one of {}", name,
                                found->second, fmt::join(words, ", ")));
    return found->second;
}

void SegmentPlan::allow_only(const std::vector<std::string>& known, const std::string& kind) const {
    for (const auto& [name, value] : options)
        if (std::ranges::find(known, name) == known.end())
            throw Error(
                ErrorCode::kInvalidArgument,
                known.empty()
                    ? fmt::format("segments of kind {} have no option \"{}\": they have none", kind, name)
                    : fmt::format("segments of kind {} have no option \"{}\": there is {}", kind, name,
                                  fmt::join(known, ", ")));
}

}  // namespace heddle::memory
