#include <dlfcn.h>
#include <fmt/format.h>
#include <strings.h>

#include <array>
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
    PlugIn{"openmp", "install libgomp1 and the plug-in of heddle"},
    PlugIn{"starpu", "apt-get install libstarpu-1.3-9 and the plug-in of heddle"},
    PlugIn{"tbb", "apt-get install libtbb12 and the plug-in of heddle"},
    PlugIn{"quark", "build QUARK and heddle's plug-in for it (docs/ENGINES.md)"},
    PlugIn{"parsec", "build PaRSEC and heddle's plug-in for it (docs/ENGINES.md)"},
};

/// The folder of this library, where its plug-ins are too; or what HEDDLE_PLUGINS says.
std::string plug_in_folder() {
    if (const char* folder = std::getenv("HEDDLE_PLUGINS"); folder != nullptr && *folder != '\0')
        return folder;
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&find_engine), &info) == 0 || info.dli_fname == nullptr) return ".";
    const std::string path = info.dli_fname;
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Stays loaded for good: the libraries behind it have threads of their own.
const EngineFactory* load(const PlugIn& plug_in, std::string& reason) {
    const std::string folder = plug_in_folder();
    for (const std::string& place : {folder + "/heddle/", folder + "/../lib/", folder + "/"}) {
        const std::string path = fmt::format("{}libheddle-engine-{}.so", place, plug_in.name);
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char* problem = dlerror();
            if (reason.empty() || reason.find("cannot open shared object file") != std::string::npos)
                reason = problem;
            continue;
        }
        const auto get = reinterpret_cast<const EngineFactory* (*)()>(dlsym(library, "heddle_engine"));
        if (get != nullptr) return get();
        reason = path + " is no plug-in of heddle: it has no heddle_engine()";
    }
    reason = fmt::format("{} ({})", plug_in.how, reason);
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
