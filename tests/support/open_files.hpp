// Files that this process has open, also such whose names are gone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heddle::test {

struct OpenFile {
    std::string name;  ///< that it has, or had
    std::string path;  ///< by which it can be opened
};

/// Those of a folder.
inline std::vector<OpenFile> open_files_in(const std::string& folder) {
    constexpr std::string_view kGone = " (deleted)";
    std::vector<OpenFile> all;
    for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code none;  // the iterator's own
        std::string name = std::filesystem::read_symlink(one.path(), none);
        if (name.ends_with(kGone)) name.resize(name.size() - kGone.size());
        if (name.starts_with(folder + "/")) all.push_back({name, one.path()});
    }
    return all;
}

}  // namespace heddle::test
