#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "memory/segment.hpp"

namespace heddle::memory {

const SegmentKind& find_segment_kind(const std::string& name) {
    static const SegmentKind kinds[] = {{"shm", create_shm_segment}, {"file", create_file_segment}};
    for (const SegmentKind& kind : kinds)
        if (kind.name == name) return kind;
    std::vector<std::string> names;
    for (const SegmentKind& kind : kinds) names.push_back(kind.name);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no segments of kind \"{}\": there are {}", name, fmt::join(names, ", ")));
}

std::string SegmentPlan::option(const std::string& name) const {
    const auto found = options.find(name);
    if (found == options.end() || found->second.empty())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a segment of this kind needs the option \"{}\"", name));
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
