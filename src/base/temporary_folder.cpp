#include "base/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "heddle/error.hpp"

namespace heddle {

std::string TemporaryFolder::place() {
    const char* const named = std::getenv("TMPDIR");
    return named == nullptr || *named == '\0' ? "/tmp" : named;
}

TemporaryFolder::Made TemporaryFolder::make(const std::string& stem) {
    Made made{stem + "XXXXXX"};
    if (::mkdtemp(made.path.data()) == nullptr) {
        const char* const why = std::strerror(errno);
        const bool in_place = stem.starts_with(place() + '/');
        throw Error(ErrorCode::kSystem,
                    fmt::format("cannot make a folder {}XXXXXX: {}{}", stem, why,
                                in_place ? ": let TMPDIR name a folder that can be written" : ""));
    }
    return made;
}

TemporaryFolder::TemporaryFolder(const std::string& stem) : TemporaryFolder(make(stem)) {}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // a leftover is no reason to fail
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace heddle
