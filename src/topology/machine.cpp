#include "heddle/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "heddle/error.hpp"
#include "topology/machine_data.hpp"

namespace heddle {
namespace {

/// Renumbers one index of all places densely from 0, in the order of the old numbers.
int make_dense(std::vector<CpuPlace>& places, int CpuPlace::*member) {
    std::vector<int> old;
    for (const CpuPlace& place : places) old.push_back(place.*member);
    std::ranges::sort(old);
    old.erase(std::unique(old.begin(), old.end()), old.end());
    for (CpuPlace& place : places)
        place.*member = static_cast<int>(std::ranges::lower_bound(old, place.*member) - old.begin());
    return static_cast<int>(old.size());
}

std::vector<CpuSet> sets_by(const std::vector<CpuPlace>& places, int CpuPlace::*member, int count) {
    std::vector<CpuSet> sets(static_cast<size_t>(count));
    for (const CpuPlace& place : places) sets[static_cast<size_t>(place.*member)].insert(place.cpu);
    return sets;
}

std::string counted(int count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::shared_ptr<const Machine::Data> Machine::Data::from_places(std::vector<CpuPlace> places, bool synthetic,
                                                                const std::string& source) {
    auto data = std::make_shared<Data>();
    data->synthetic = synthetic;
    std::ranges::sort(places, {}, &CpuPlace::cpu);
    if (places.empty()) throw Error(ErrorCode::kBadInput, fmt::format("{} has no CPU", source));
    const auto twice = std::ranges::adjacent_find(places, {}, &CpuPlace::cpu);
    if (twice != places.end())
        throw Error(ErrorCode::kBadInput, fmt::format("{} has CPU {} twice", source, twice->cpu));
    if (places.back().cpu >= CpuSet::kMaxCpus)
        throw Error(ErrorCode::kBadInput, fmt::format("{} has CPU {}; heddle knows CPUs below {}", source,
                                                      places.back().cpu, CpuSet::kMaxCpus));
    data->core_count = make_dense(places, &CpuPlace::core);
    data->package_count = make_dense(places, &CpuPlace::package);
    data->numa_count = make_dense(places, &CpuPlace::numa);
    data->core_cpus = sets_by(places, &CpuPlace::core, data->core_count);
    data->numa_cpus = sets_by(places, &CpuPlace::numa, data->numa_count);
    data->package_cpus = sets_by(places, &CpuPlace::package, data->package_count);

    data->index_of.assign(static_cast<size_t>(places.back().cpu) + 1, -1);
    for (size_t i = 0; i < places.size(); ++i) {
        data->cpus.insert(places[i].cpu);
        data->index_of[static_cast<size_t>(places[i].cpu)] = static_cast<int>(i);
    }

    data->places = places;
    std::ranges::sort(places, {},
                      [](const CpuPlace& p) { return std::tie(p.package, p.numa, p.core, p.cpu); });
    data->core_of.resize(data->index_of.size());
    const CpuPlace* before = nullptr;
    for (const CpuPlace& place : places) {
        const bool new_package = before == nullptr || before->package != place.package;
        const bool new_node = new_package || before->numa != place.numa;
        if (new_node || before->core != place.core) {
            if (new_node) {
                if (new_package) data->packages.push_back({data->nodes.size(), data->nodes.size()});
                data->nodes.push_back({data->cores.size(), data->cores.size()});
                data->package_of.push_back(data->packages.size() - 1);
                ++data->packages.back().last;
            }
            data->cores.push_back({data->order.size(), data->order.size()});
            data->node_of.push_back(data->nodes.size() - 1);
            ++data->nodes.back().last;
        }
        data->order.push_back(place.cpu);
        data->core_of[static_cast<size_t>(place.cpu)] = data->cores.size() - 1;
        ++data->cores.back().last;
        before = &place;
    }
    return data;
}

const CpuSet& Machine::cpus() const noexcept {
    return data_->cpus;
}

const std::vector<CpuPlace>& Machine::places() const noexcept {
    return data_->places;
}

const CpuPlace& Machine::place(int cpu) const {
    if (!data_->cpus.contains(cpu))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("CPU {} is not one of this machine's {}", cpu, data_->cpus.to_list()));
    return data_->places[static_cast<size_t>(data_->index_of[static_cast<size_t>(cpu)])];
}

int Machine::core_count() const noexcept {
    return data_->core_count;
}

int Machine::package_count() const noexcept {
    return data_->package_count;
}

int Machine::numa_count() const noexcept {
    return data_->numa_count;
}

bool Machine::synthetic() const noexcept {
    return data_->synthetic;
}

std::string Machine::summary() const {
    return fmt::format("{}, {}, {}, {}", counted(data_->package_count, "package"),
                       counted(data_->numa_count, "NUMA node"), counted(data_->core_count, "core"),
                       counted(data_->cpus.count(), "CPU"));
}

int Machine::distance(int a, int b) const {
    const CpuPlace& from = place(a);
    const CpuPlace& to = place(b);
    if (from.cpu == to.cpu) return 0;
    if (from.core == to.core) return 1;
    if (from.numa == to.numa) return 2;
    return from.package == to.package ? 3 : 4;
}

}  // namespace heddle
