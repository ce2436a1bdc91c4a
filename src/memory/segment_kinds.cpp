#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/memory.hpp"
#include "memory/segment_plug_in.hpp"

namespace heddle::memory {
namespace {

const SegmentKind& started(const SegmentPlugIn& plug_in) {
    plug_in.start(program_has_mpi());
    return plug_in.kind;
}

/// A kind of this library, or how one comes by a plug-in's.
struct Known {
    std::string name;
    SegmentKind own;
    const SegmentPlugIn& (*plug_in)();
};

const std::vector<Known>& known_kinds() {
    static const std::vector<Known> all{{"shm", {"shm", create_shm_segment}, nullptr},
                                        {"file", {"file", create_file_segment}, nullptr},
                                        {"mpi", {}, mpi_plug_in},
                                        {"gaspi", {}, gaspi_plug_in}};
    return all;
}

}  // namespace

const SegmentKind& find_segment_kind(const std::string& name) {
    std::vector<std::string> names;
    for (const Known& kind : known_kinds()) {
        if (kind.name == name) return kind.plug_in == nullptr ? kind.own : started(kind.plug_in());
        names.push_back(kind.name);
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no segments of kind \"{}\": there are {}", name, fmt::join(names, ", ")));
}

std::vector<SegmentKindInfo> segment_kinds() {
    std::vector<SegmentKindInfo> kinds;
    for (const Known& kind : known_kinds()) {
        SegmentKindInfo info{kind.name, true, "", ""};
        try {
            if (kind.plug_in != nullptr) info.version = kind.plug_in().version();
        } catch (const Error& error) {
            info.available = false;
            info.reason = error.what();
        }
        kinds.push_back(std::move(info));
    }
    return kinds;
}

}  // namespace heddle::memory
