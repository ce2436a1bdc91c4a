#include "base/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "heddle/error.hpp"

namespace heddle {

TemporaryFolder::TemporaryFolder(const std::string& stem) : path_(stem + "XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
        throw Error(ErrorCode::kSystem,
                    fmt::format("cannot make the folder {}: {}", path_, std::strerror(errno)));
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // a leftover is no reason to fail
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace heddle
