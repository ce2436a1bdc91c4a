#include "opencl/partition.hpp"

#include <sched.h>

#include <utility>

#include "heddle/compat/CL/cl_heddle.h"

namespace heddle::opencl {
namespace {

Partition refused(cl_int code) {
    return {code, {}};
}

/// Takes the first `count` CPUs out of `rest`.
CpuSet take(CpuSet& rest, size_t count) {
    CpuSet part;
    for (; count > 0 && !rest.empty(); --count) {
        part.insert(rest.first());
        rest.erase(rest.first());
    }
    return part;
}

Partition equally(CpuSet rest, cl_device_partition_property units) {
    if (units <= 0) return refused(CL_INVALID_VALUE);
    const auto size = static_cast<size_t>(units);
    if (std::cmp_greater(size, rest.count())) return refused(CL_DEVICE_PARTITION_FAILED);
    Partition result;
    while (std::cmp_less_equal(size, rest.count())) result.parts.push_back(take(rest, size));
    return result;
}

Partition by_counts(CpuSet rest, const cl_device_partition_property* at) {
    Partition result;
    for (; *at != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END; ++at) {
        if (*at < 0 || std::cmp_greater(*at, rest.count())) return refused(CL_INVALID_DEVICE_PARTITION_COUNT);
        result.parts.push_back(take(rest, static_cast<size_t>(*at)));
    }
    return result.parts.empty() ? refused(CL_INVALID_DEVICE_PARTITION_COUNT) : result;
}

Partition by_names(const CpuSet& cpus, const cl_device_partition_property* at) {
    CpuSet part;
    for (; *at != CL_PARTITION_BY_NAMES_LIST_END_HEDDLE; ++at) {
        if (*at < 0 || *at >= cpus.count()) return refused(CL_INVALID_DEVICE_PARTITION_COUNT);
        int cpu = cpus.first();
        for (auto name = *at; name > 0; --name) cpu = cpus.next(cpu);
        if (part.contains(cpu)) return refused(CL_INVALID_DEVICE_PARTITION_COUNT);
        part.insert(cpu);
    }
    return part.empty() ? refused(CL_INVALID_DEVICE_PARTITION_COUNT) : Partition{CL_SUCCESS, {part}};
}

Partition by_sets(const CpuSet& cpus, const cl_device_partition_property* at) {
    Partition result;
    for (; *at != 0; ++at) {
        const CpuSet part = CpuSet::from_native(reinterpret_cast<const cpu_set_t*>(*at), sizeof(cpu_set_t));
        if (part.empty() || !cpus.contains(part)) return refused(CL_INVALID_DEVICE_PARTITION_COUNT);
        result.parts.push_back(part);
    }
    return result.parts.empty() ? refused(CL_INVALID_VALUE) : result;
}

Partition by_numa(const CpuSet& cpus, const Machine& machine, cl_device_partition_property domain) {
    if (domain != CL_DEVICE_AFFINITY_DOMAIN_NUMA && domain != CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE)
        return refused(CL_INVALID_VALUE);
    Partition result;
    for (int node = 0; node < machine.numa_count(); ++node) {
        CpuSet part;
        for (const CpuPlace& place : machine.places())
            if (place.numa == node && cpus.contains(place.cpu)) part.insert(place.cpu);
        if (!part.empty()) result.parts.push_back(part);
    }
    return result;
}

}  // namespace

Partition partition(const CpuSet& cpus, const Machine& machine,
                    const cl_device_partition_property* properties) {
    const auto* const values = properties + 1;
    // What has one value ends behind it.
    const auto alone = [&](Partition result) { return values[1] == 0 ? result : refused(CL_INVALID_VALUE); };
    switch (properties[0]) {
        case CL_DEVICE_PARTITION_EQUALLY:
            return alone(equally(cpus, values[0]));
        case CL_DEVICE_PARTITION_BY_COUNTS:
            return by_counts(cpus, values);
        case CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN:
            return alone(by_numa(cpus, machine, values[0]));
        case CL_DEVICE_PARTITION_BY_NAMES_HEDDLE:
            return by_names(cpus, values);
        case CL_DEVICE_PARTITION_BY_CPU_SET_HEDDLE:
            return by_sets(cpus, values);
        default:
            return refused(CL_INVALID_VALUE);
    }
}

}  // namespace heddle::opencl
