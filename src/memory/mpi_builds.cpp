// Which MPI is this process's. heddle's plug-in for segments of kind mpi is built once for each, since their
// binary interfaces differ, and a process can have only one of them.
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/plug_ins.hpp"
#include "base/settings.hpp"
#include "memory/segment_plug_in.hpp"

namespace heddle::memory {
namespace {

struct Build {
    const char* name;
    /// What the text of its MPI_Get_library_version() has in it.
    const char* in_version;
    /// A variable with the number of ranks that its mpirun sets.
    const char* ranks_variable;
    const char* how;
};
constexpr std::array kBuilds{
    Build{"openmpi", "Open MPI", "OMPI_COMM_WORLD_SIZE",
          "build heddle where libopenmpi-dev is installed, and install libopenmpi3 and openmpi-bin"},
    Build{"mpich", "MPICH", "PMI_SIZE", "build heddle where libmpich-dev is installed, and install mpich"},
};

/// How many ranks an mpirun has started with this one; 0 where it was none.
long ranks_by(const Build& build) {
    const char* const text = std::getenv(build.ranks_variable);
    return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

const Build* named_by_setting() {
    const std::string name = setting("HEDDLE_MPI");
    if (name.empty()) return nullptr;
    for (const Build& build : kBuilds)
        if (name == build.name) return &build;
    throw Error(ErrorCode::kBadInput, fmt::format("HEDDLE_MPI is \"{}\": it is to be {} or {}", name,
                                                  kBuilds[0].name, kBuilds[1].name));
}

/// Of the MPI that is in the process; it may be asked before MPI_Init.
const Build* of_program() {
    constexpr size_t kLongestVersion = 8192 + 1;  // of MPICH, whose texts are the longest
    char text[kLongestVersion] = "";
    int length = 0;
    const auto version =
        reinterpret_cast<int (*)(char*, int*)>(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
    if (version == nullptr) return nullptr;
    version(text, &length);
    for (const Build& build : kBuilds)
        if (std::strstr(text, build.in_version) != nullptr) return &build;
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("heddle knows Open MPI and MPICH, and the program has another MPI: {:.80}", text));
}

const Build* of_launcher() {
    for (const Build& build : kBuilds)
        if (ranks_by(build) > 0) return &build;
    return nullptr;
}

const SegmentPlugIn* load(const Build& build, std::string& reason) {
    const auto get = reinterpret_cast<const SegmentPlugIn* (*)()>(plug_in_function(
        fmt::format("libheddle-segment-mpi-{}.so", build.name), "heddle_segment", build.how, reason));
    return get == nullptr ? nullptr : get();
}

const SegmentPlugIn& find_plug_in() {
    const Build* wanted = named_by_setting();
    if (wanted == nullptr) wanted = of_program();
    if (wanted == nullptr) wanted = of_launcher();
    std::string reasons;
    for (const Build& build : kBuilds) {
        if (wanted != nullptr && wanted != &build) continue;
        std::string reason;
        if (const SegmentPlugIn* const found = load(build, reason)) return *found;
        reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", build.name, reason);
    }
    throw Error(ErrorCode::kUnavailable, fmt::format("no MPI for segments of kind mpi: {}", reasons));
}

}  // namespace

bool program_has_mpi() {
    // Before a plug-in brings one.
    static const bool has = dlsym(RTLD_DEFAULT, "MPI_Init_thread") != nullptr;
    return has;
}

const SegmentPlugIn& mpi_plug_in() {
    static std::mutex mutex;
    static const SegmentPlugIn* found = nullptr;
    const std::lock_guard lock(mutex);
    (void)program_has_mpi();
    if (found == nullptr) found = &find_plug_in();
    return *found;
}

std::unique_ptr<RankGroup> ranks_of_launcher() {
    bool several = false;
    for (const Build& build : kBuilds) several = several || ranks_by(build) > 1;
    return several ? mpi_plug_in().ranks(program_has_mpi(), {}) : nullptr;
}

}  // namespace heddle::memory
