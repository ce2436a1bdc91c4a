// What a Machine holds: the places of its CPUs and, made from them once, the tables that placement needs.
//
// Built by one thread and constant from then on, so that any thread may read it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/machine.hpp"

namespace heddle {

struct Machine::Data {
    /// A run of `order`: the CPUs of one core, or of the part of a NUMA node that lies in one package.
    struct Run {
        size_t first = 0;  ///< index into order for cores, into cores for nodes, into nodes for packages
        size_t last = 0;
    };

    CpuSet cpus;
    std::vector<CpuPlace> places;  ///< by ascending CPU
    std::vector<int> index_of;     ///< index into places by CPU, -1 for a hole
    int core_count = 0;
    int package_count = 0;
    int numa_count = 0;
    bool synthetic = false;

    std::vector<int> order;  ///< all CPUs, those of a core side by side, cores of a node, nodes of a package
    std::vector<Run> cores;
    std::vector<Run> nodes;
    std::vector<Run> packages;
    std::vector<size_t> core_of;     ///< by CPU, the index into cores
    std::vector<size_t> node_of;     ///< by index into cores
    std::vector<size_t> package_of;  ///< by index into nodes
    std::vector<CpuSet> core_cpus;   ///< by CpuPlace::core
    std::vector<CpuSet> numa_cpus;
    std::vector<CpuSet> package_cpus;

    /// Completes what follows from the places, given in any order. Throws kBadInput where there is no CPU or
    /// one CPU is there twice; `source` says where they come from.
    [[nodiscard]] static std::shared_ptr<const Data> from_places(std::vector<CpuPlace> places, bool synthetic,
                                                                 const std::string& source);
};

}  // namespace heddle
