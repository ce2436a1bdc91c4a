#include "base/plug_ins.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

namespace heddle {

std::string library_folder() {
    std::error_code failed;
    Dl_info info;
    std::filesystem::path path;
    if (dladdr(reinterpret_cast<void*>(&plug_in_function), &info) != 0 && info.dli_fname != nullptr)
        path = info.dli_fname;
    // A program's is as it was called, which says little in another folder.
    if (!path.is_absolute()) path = std::filesystem::read_symlink("/proc/self/exe", failed);
    return path.parent_path().string();
}

namespace {

/// By the user; empty: none.
std::string named_folder() {
    const char* const folder = ::secure_getenv("HEDDLE_PLUGINS");
    return folder == nullptr ? "" : folder;
}

/// Where plug-ins may be, best first: beside the library, or the library's folder as a program in bin,
/// libexec/heddle or libexec/heddle/bench sees it.
std::vector<std::string> plug_in_folders() {
    if (const std::string named = named_folder(); !named.empty()) return {named};
    const std::string own = library_folder();
    return {own + "/heddle", own + "/../lib/heddle", own + "/../" HEDDLE_LIBRARY_FOLDER "/heddle",
            own + "/../../" HEDDLE_LIBRARY_FOLDER "/heddle",
            own + "/../../../" HEDDLE_LIBRARY_FOLDER "/heddle"};
}

}  // namespace

void* plug_in_function(const std::string& file, const char* function, const std::string& how,
                       std::string& reason) {
    for (const std::string& folder : plug_in_folders()) {
        const std::string path = fmt::format("{}/{}", folder, file);
        if (::access(path.c_str(), F_OK) != 0) continue;
        void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            reason = fmt::format("{}; to mend it: {}", dlerror(), how);
            return nullptr;
        }
        void* const found = dlsym(library, function);
        if (found == nullptr)
            reason = fmt::format("{} is no plug-in of heddle: it has no {}()", path, function);
        return found;
    }
    const std::string named = named_folder();
    const std::string where = named.empty() ? "installed" : fmt::format("in {} (HEDDLE_PLUGINS)", named);
    reason = fmt::format("heddle's plug-in for it is not {}: {}", where, how);
    return nullptr;
}

}  // namespace heddle
