#include <dlfcn.h>
#include <fmt/format.h>
#include <strings.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "heddle/error.hpp"
#include "tasks/engine.hpp"

namespace heddle {

extern const EngineFactory kNativeEngine;

namespace {

/// An engine that is a library of its own, and how one comes by it.
struct PlugIn {
    const char* name;
    const char* how;
};
constexpr std::array kPlugIns{
    PlugIn{"openmp", "build heddle with g++, and install libgomp1"},
    PlugIn{"openmp-libomp", "build heddle where clang and libomp-dev are installed, and install libomp5"},
    PlugIn{"tbb", "build heddle where libtbb-dev is installed, and install libtbb12"},
    PlugIn{"starpu", "apt-get install libstarpu-dev, and build heddle there"},
    PlugIn{"quark", "build QUARK (https://github.com/ecrc/quark), and heddle with QUARK_HOME"},
    PlugIn{"parsec", "none is made yet (PaRSEC: https://github.com/ICLDisco/parsec)"},
};

/// The folder of this code: of libheddle.so, or of a program that it is linked into.
std::string own_folder() {
    std::error_code failed;
    Dl_info info;
    std::filesystem::path path;
    if (dladdr(reinterpret_cast<void*>(&find_engine), &info) != 0 && info.dli_fname != nullptr)
        path = info.dli_fname;
    // A program's is as it was called, which says little in another folder.
    if (!path.is_absolute()) path = std::filesystem::read_symlink("/proc/self/exe", failed);
    return path.parent_path().string();
}

/// Where plug-ins may be, best first: beside the library, or the library's folder as a program sees it.
std::vector<std::string> plug_in_folders() {
    if (const char* folder = std::getenv("HEDDLE_PLUGINS"); folder != nullptr && *folder != '\0')
        return {folder};
    const std::string own = own_folder();
    return {own + "/heddle", own + "/../lib/heddle", own + "/../" HEDDLE_LIBRARY_FOLDER "/heddle"};
}

/// Stays loaded for good: the libraries behind it have threads of their own.
const EngineFactory* load(const PlugIn& plug_in, std::string& reason) {
    for (const std::string& folder : plug_in_folders()) {
        const std::string path = fmt::format("{}/libheddle-engine-{}.so", folder, plug_in.name);
        if (::access(path.c_str(), F_OK) != 0) continue;
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            reason = fmt::format("{}; to mend it: {}", dlerror(), plug_in.how);
            return nullptr;
        }
        const auto get = reinterpret_cast<const EngineFactory* (*)()>(dlsym(library, "heddle_engine"));
        if (get != nullptr) return get();
        reason = path + " is no plug-in of heddle: it has no heddle_engine()";
        return nullptr;
    }
    reason = fmt::format("heddle's plug-in for it is not installed: {}", plug_in.how);
    return nullptr;
}

struct Known {
    std::string name;
    const EngineFactory* factory;  // null: see reason
    std::string reason;
};

std::mutex known_mutex;

const Known& known(const PlugIn& plug_in) {
    static std::array<Known, kPlugIns.size()> all;
    // libomp makes itself known to all that is loaded after it, and has the names of libgomp too.
    if (plug_in.name == std::string_view("openmp-libomp")) (void)known(kPlugIns.front());
    const std::lock_guard guard(known_mutex);
    Known& one = all[static_cast<size_t>(&plug_in - kPlugIns.data())];
    if (one.name.empty()) {
        one.name = plug_in.name;
        one.factory = load(plug_in, one.reason);
        if (one.factory != nullptr) one.reason = one.factory->problem();
    }
    return one;
}

}  // namespace

const EngineFactory& find_engine(std::string_view name) {
    const std::string wanted(name);
    if (strcasecmp(wanted.c_str(), kNativeEngine.name) == 0) return kNativeEngine;
    std::string names = kNativeEngine.name;
    for (const PlugIn& plug_in : kPlugIns) {
        names += fmt::format(", {}", plug_in.name);
        if (strcasecmp(wanted.c_str(), plug_in.name) != 0) continue;
        const Known& one = known(plug_in);
        if (one.factory == nullptr || !one.reason.empty())
            throw Error(ErrorCode::kUnavailable,
                        fmt::format("the engine {} is not available: {}", plug_in.name, one.reason));
        return *one.factory;
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there is no engine named '{}': heddle knows {}", name, names));
}

std::vector<EngineInfo> list_engines() {
    std::vector<EngineInfo> all{{kNativeEngine.name, true, kNativeEngine.version(), ""}};
    for (const PlugIn& plug_in : kPlugIns) {
        const Known& one = known(plug_in);
        const bool available = one.factory != nullptr && one.reason.empty();
        all.push_back(
            {plug_in.name, available, available ? one.factory->version() : "", available ? "" : one.reason});
    }
    return all;
}

}  // namespace heddle
