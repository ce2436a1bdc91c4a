#include "snet_share.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "heddle/error.hpp"

namespace heddle::tool {

void announce_streams(const std::string& program, int min, int max) {
    if (max > 0 && min > max)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("at least {} workers are more than {} at most", min, max));
    ::setenv("HEDDLE_NAME", std::filesystem::path(program).stem().c_str(), 0);
    if (min > 0) ::setenv("HEDDLE_MIN", std::to_string(min).c_str(), 0);
    if (max > 0) ::setenv("HEDDLE_MAX", std::to_string(max).c_str(), 0);
}

}  // namespace heddle::tool
