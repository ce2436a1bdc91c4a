#include <fmt/format.h>
#include <strings.h>

#include <array>
#include <mutex>

#include "base/plug_ins.hpp"
#include "heddle/error.hpp"
#include "tasks/engine.hpp"
#include "topology/thread_affinity.hpp"

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
    PlugIn{"parsec", "build PaRSEC (https://github.com/ICLDisco/parsec), and heddle with PARSEC_HOME"},
};

/// The calling thread is where it were, had heddle not bound it: runtimes count the CPUs that it may run on.
class Unbound {
  public:
    Unbound() : before_(thread_affinity()), outer_(outer_affinity()) {
        if (before_ != outer_) (void)set_thread_affinity(outer_);
    }
    ~Unbound() {
        // Whoever has moved it meanwhile knows better.
        if (before_ != outer_ && affinity_if_known() == outer_) (void)set_thread_affinity(before_);
    }
    Unbound(const Unbound&) = delete;
    Unbound& operator=(const Unbound&) = delete;

  private:
    const CpuSet before_, outer_;
};

/// Stays loaded for good: the libraries behind it have threads of their own.
const EngineFactory* load(const PlugIn& plug_in, std::string& reason) {
    const Unbound unbound;
    const auto get = reinterpret_cast<const EngineFactory* (*)()>(plug_in_function(
        fmt::format("libheddle-engine-{}.so", plug_in.name), "heddle_engine", plug_in.how, reason));
    return get == nullptr ? nullptr : get();
}

struct Known {
    std::string name;
    const EngineFactory* factory;  // null: see reason
    std::string reason;
    bool prepared = false;

    /// "" where it can be had.
    [[nodiscard]] std::string why_not() const { return factory == nullptr ? reason : factory->problem(); }
};

std::mutex known_mutex;

Known& known(const PlugIn& plug_in) {
    static std::array<Known, kPlugIns.size()> all;
    // libomp makes itself known to all that is loaded after it, and has the names of libgomp too.
    if (plug_in.name == std::string_view("openmp-libomp")) (void)known(kPlugIns.front());
    const std::lock_guard guard(known_mutex);
    Known& one = all[static_cast<size_t>(&plug_in - kPlugIns.data())];
    if (one.name.empty()) {
        one.name = plug_in.name;
        one.factory = load(plug_in, one.reason);
    }
    return one;
}

void prepare(Known& one) {
    const std::lock_guard guard(known_mutex);
    if (one.prepared || one.factory->prepare == nullptr) return;
    const Unbound unbound;
    one.factory->prepare();
    one.prepared = true;
}

}  // namespace

const EngineFactory& find_engine(std::string_view name) {
    const std::string wanted(name);
    if (strcasecmp(wanted.c_str(), kNativeEngine.name) == 0) return kNativeEngine;
    std::string names = kNativeEngine.name;
    for (const PlugIn& plug_in : kPlugIns) {
        names += fmt::format(", {}", plug_in.name);
        if (strcasecmp(wanted.c_str(), plug_in.name) != 0) continue;
        Known& one = known(plug_in);
        if (const std::string reason = one.why_not(); !reason.empty())
            throw Error(ErrorCode::kUnavailable,
                        fmt::format("the engine {} is not available: {}", plug_in.name, reason));
        prepare(one);
        return *one.factory;
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there is no engine named '{}': heddle knows {}", name, names));
}

std::vector<EngineInfo> list_engines() {
    std::vector<EngineInfo> all{{kNativeEngine.name, true, kNativeEngine.version(), ""}};
    for (const PlugIn& plug_in : kPlugIns) {
        const Known& one = known(plug_in);
        const std::string reason = one.why_not();
        all.push_back({plug_in.name, reason.empty(), reason.empty() ? one.factory->version() : "", reason});
    }
    return all;
}

}  // namespace heddle
