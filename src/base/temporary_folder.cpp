#include "base/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "heddle/error.hpp"

namespace heddle {

TemporaryFolder::Made TemporaryFolder::make(const std::string& stem) {
    Made made{stem + "XXXXXX"};
    if (::mkdtemp(made.path.data()) == nullptr)
        throw Error(ErrorCode::kSystem,
                    fmt::format("cannot make the folder {}: {}", made.path, std::strerror(errno)));
    return made;
}

TemporaryFolder::TemporaryFolder(const std::string& stem) : TemporaryFolder(make(stem)) {}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // a leftover is no reason to fail
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace heddle
