#include "tasks/task_place.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "heddle/error.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

/// Of those in `all` the nearest to `cpu`.
CpuSet near_cpu(int cpu, const Machine& machine, const CpuSet& all) {
    int shortest = INT_MAX;
    CpuSet nearest;
    for (const int one : all) {
        const int distance = machine.distance(cpu, one);
        if (distance < shortest) nearest = {};
        shortest = std::min(shortest, distance);
        if (distance == shortest) nearest.insert(one);
    }
    return nearest;
}

CpuSet near_node(int node, const Machine& machine, const CpuSet& all) {
    CpuSet there;
    for (const CpuPlace& place : machine.places())
        if (place.numa == node) there.insert(place.cpu);
    if (there.empty())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a task shall run near NUMA node {}, and the machine has {} of them, from 0",
                                node, machine.numa_count()));
    return there.intersects(all) ? there & all : near_cpu(there.first(), machine, all);
}

/// The node of the system's numbering where the memory lies, or -1: it was not written yet, or the system
/// does not tell.
int system_node_of(const void* address) {
    constexpr unsigned long kNodeOfAddress = 3;  // MPOL_F_NODE | MPOL_F_ADDR
    int node = -1;
    const long failed = ::syscall(SYS_get_mempolicy, &node, nullptr, 0UL, address, kNodeOfAddress);
    return failed == 0 ? node : -1;
}

CpuSet near_data(const void* address, const Machine& machine, const CpuSet& all) {
    if (machine.numa_count() < 2 || machine.synthetic()) return {};
    const int node = system_node_of(address);
    return node < 0 || node >= machine.numa_count() ? CpuSet() : near_node(node, machine, all);
}

CpuSet near(const Near& near, const Machine& machine, const CpuSet& all) {
    switch (near.kind()) {
        case Near::Kind::kNothing:
            break;
        case Near::Kind::kCpu:
            if (!machine.cpus().contains(near.number()))
                throw Error(ErrorCode::kInvalidArgument,
                            fmt::format("a task shall run near CPU {}, and the machine has CPUs {}",
                                        near.number(), machine.cpus().to_list()));
            return near_cpu(near.number(), machine, all);
        case Near::Kind::kNode:
            return near_node(near.number(), machine, all);
        case Near::Kind::kData:
            return near_data(near.address(), machine, all);
    }
    return {};
}

}  // namespace

const Placement* Placements::find(const TaskOptions& options, const Machine& machine, const CpuSet& all) {
    Placement wanted{near(options.near, machine, all), false};
    if (options.cpus) {
        if (options.cpus->empty())
            throw Error(ErrorCode::kInvalidArgument,
                        "a task's set of CPUs is empty: it could run nowhere; name some, or no set");
        if (const CpuSet beyond = *options.cpus - all; !beyond.empty())
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("a task cannot run on CPUs {}: its runtime has CPUs {}", beyond.to_list(),
                                    all.to_list()));
        wanted.cpus = wanted.cpus.intersects(*options.cpus) ? wanted.cpus & *options.cpus : *options.cpus;
        wanted.must = true;
    }
    if (wanted.cpus.empty() || wanted.cpus == all) return nullptr;
    const std::lock_guard guard(mutex_);
    for (const auto& one : known_)
        if (*one == wanted) return one.get();
    known_.push_back(std::make_unique<const Placement>(std::move(wanted)));
    return known_.back().get();
}

void TaskPlace::enter(bool first) {
    const CpuSet here = affinity_if_known();
    if (placement_.cpus.contains(here)) return;
    if (set_thread_affinity(placement_.cpus))
        before_ = here;
    else if (first && placement_.must)
        throw Error(ErrorCode::kSystem,
                    fmt::format("the system does not let a task run on CPUs {}, of its TaskOptions: {}",
                                placement_.cpus.to_list(), std::strerror(errno)));
}

void TaskPlace::leave() noexcept {
    // What the system refuses it has taken from the process meanwhile.
    if (!before_.empty()) (void)set_thread_affinity(before_);
    before_ = {};
}

void TaskPlace::enter_again() noexcept {
    try {
        enter(false);
    } catch (const std::bad_alloc&) {
        // The task goes on where it is: there is nobody here to tell.
    }
}

}  // namespace heddle
