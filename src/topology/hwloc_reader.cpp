// Machines as hwloc sees them. Only packages, NUMA nodes, cores and CPUs are asked for: caches, devices,
// distances and the like would take most of the loading time.
#include <fmt/format.h>
#include <hwloc.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/settings.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "topology/machine_data.hpp"
#include "topology/synthetic.hpp"

namespace heddle {
namespace {

constexpr uintmax_t kMaxXmlBytes = uintmax_t{64} << 20;

class Topology {
  public:
    Topology() {
        if (hwloc_topology_init(&topology_) != 0)
            throw Error(ErrorCode::kSystem, fmt::format("hwloc cannot start: {}", std::strerror(errno)));
    }
    Topology(const Topology&) = delete;
    Topology& operator=(const Topology&) = delete;
    ~Topology() { hwloc_topology_destroy(topology_); }

    [[nodiscard]] hwloc_topology_t get() const noexcept { return topology_; }

    [[nodiscard]] bool load() {
        hwloc_topology_set_all_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_NONE);
        hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
        hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
        // A NUMA node that is neither a package nor the machine hangs on a group; without the group, hwloc
        // hangs it on what is above, and all nodes look alike.
        hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
        hwloc_topology_set_flags(topology_,
                                 HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                     HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
        return hwloc_topology_load(topology_) == 0;
    }

  private:
    hwloc_topology_t topology_ = nullptr;
};

/// The smallest NUMA node that a CPU belongs to: with memory of two kinds (HBM beside DRAM), the first.
int numa_of(hwloc_topology_t topology, hwloc_obj_t pu) {
    int best = 0;
    int best_weight = 0;
    for (hwloc_obj_t node = nullptr;
         (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
        if (!hwloc_bitmap_isset(node->cpuset, pu->os_index)) continue;
        const int weight = hwloc_bitmap_weight(node->cpuset);
        if (best_weight == 0 || weight < best_weight) {
            best = static_cast<int>(node->logical_index);
            best_weight = weight;
        }
    }
    return best;
}

int ancestor_index(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t pu, int otherwise) {
    const hwloc_obj_t found = hwloc_get_ancestor_obj_by_type(topology, type, pu);
    return found == nullptr ? otherwise : static_cast<int>(found->logical_index);
}

std::shared_ptr<const Machine::Data> read_places(const Topology& topology, bool synthetic,
                                                 const std::string& source) {
    std::vector<CpuPlace> places;
    for (hwloc_obj_t pu = nullptr;
         (pu = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, pu)) != nullptr;) {
        if (pu->os_index >= static_cast<unsigned>(CpuSet::kMaxCpus))
            throw Error(ErrorCode::kBadInput, fmt::format("{} has CPU {}; heddle knows CPUs below {}", source,
                                                          pu->os_index, CpuSet::kMaxCpus));
        // A machine described without cores has one for each CPU; one without packages is one package.
        places.push_back(
            {static_cast<int>(pu->os_index),
             ancestor_index(topology.get(), HWLOC_OBJ_CORE, pu, static_cast<int>(pu->logical_index)),
             ancestor_index(topology.get(), HWLOC_OBJ_PACKAGE, pu, 0), numa_of(topology.get(), pu)});
    }
    return Machine::Data::from_places(std::move(places), synthetic, source);
}

std::shared_ptr<const Machine::Data> read_this_machine() {
    Topology topology;
    if (!topology.load())
        throw Error(ErrorCode::kSystem,
                    fmt::format("hwloc cannot read this machine's topology: {}", std::strerror(errno)));
    const bool real = hwloc_topology_is_thissystem(topology.get()) != 0;
    return read_places(topology, !real, "this machine");
}

}  // namespace

Machine Machine::detect() {
    const std::string described = setting("HEDDLE_TOPOLOGY");
    if (!described.empty()) {
        try {
            return described.starts_with("xml:") ? from_xml(described.substr(4)) : synthetic(described);
        } catch (const Error& error) {
            throw Error(error.code(), fmt::format("HEDDLE_TOPOLOGY: {}", error.what()));
        }
    }
    // To read it takes milliseconds, and each runtime asks for it.
    static const std::shared_ptr<const Data> this_machine = read_this_machine();
    return Machine(this_machine);
}

Machine Machine::synthetic(std::string_view description) {
    const auto [text, cpus] = checked_synthetic(description);
    Topology topology;
    if (hwloc_topology_set_synthetic(topology.get(), text.c_str()) != 0 || !topology.load())
        throw Error(ErrorCode::kBadInput,
                    fmt::format("topology '{}': hwloc does not know one of its levels, or their order is "
                                "impossible; write it as 'numa:2 core:64 pu:2', the last level pu",
                                text));
    auto data = read_places(topology, true, fmt::format("topology '{}'", text));
    if (data->cpus.count() != cpus)  // hwloc drops a CPU whose index is there twice
        throw Error(
            ErrorCode::kBadInput,
            fmt::format("topology '{}': its indexes name {} CPUs, its levels {}; give each CPU an index "
                        "of its own",
                        text, data->cpus.count(), cpus));
    return Machine(std::move(data));
}

Machine Machine::from_xml(const std::string& path) {
    std::error_code failure;
    if (!std::filesystem::is_regular_file(path, failure))
        throw Error(ErrorCode::kBadInput, fmt::format("topology file '{}' is not a readable file{}", path,
                                                      failure ? ": " + failure.message() : ""));
    if (std::filesystem::file_size(path, failure) > kMaxXmlBytes || failure)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("topology file '{}' is larger than {} MiB", path, kMaxXmlBytes >> 20));
    Topology topology;
    if (hwloc_topology_set_xml(topology.get(), path.c_str()) != 0 || !topology.load())
        throw Error(ErrorCode::kBadInput,
                    fmt::format("topology file '{}' is not hwloc's XML; make one with: lstopo {}", path,
                                "machine.xml"));
    return Machine(read_places(topology, true, fmt::format("topology file '{}'", path)));
}

}  // namespace heddle
