// Dividing CPUs and taking threads for them, on machines that are larger than this one.
#include "opencl/partition.hpp"

#include <gtest/gtest.h>

#include "heddle/compat/CL/cl_heddle.h"
#include "opencl/thread_places.hpp"

namespace heddle::opencl {
namespace {

using Properties = std::vector<cl_device_partition_property>;

std::vector<std::string> divided(const CpuSet& cpus, const Properties& properties) {
    const Partition result = partition(cpus, Machine::synthetic("numa:2 core:4 pu:1"), properties.data());
    if (result.code != CL_SUCCESS) return {std::to_string(result.code)};
    std::vector<std::string> lists;
    for (const CpuSet& part : result.parts) lists.push_back(part.to_list());
    return lists;
}

using Lists = std::vector<std::string>;

TEST(Partition, UnitsAreTheCpusInTheirOrder) {
    const CpuSet odd{1, 3, 5, 7};
    EXPECT_EQ(divided(odd, {CL_DEVICE_PARTITION_EQUALLY, 2, 0}), (Lists{"1,3", "5,7"}));
    EXPECT_EQ(divided(odd, {CL_DEVICE_PARTITION_EQUALLY, 3, 0}), (Lists{"1,3,5"}));
    EXPECT_EQ(divided(odd, {CL_DEVICE_PARTITION_BY_COUNTS, 1, 2, 0, 0}), (Lists{"1", "3,5"}));
    EXPECT_EQ(divided(odd, {CL_DEVICE_PARTITION_BY_NAMES_HEDDLE, 3, 0, -1, 0}), (Lists{"1,7"}));
    EXPECT_EQ(divided(odd, {CL_DEVICE_PARTITION_BY_NAMES_HEDDLE, 3, 3, -1, 0}),
              (Lists{std::to_string(CL_INVALID_DEVICE_PARTITION_COUNT)}));
    EXPECT_EQ(divided(CpuSet::range(0, 8),
                      {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0}),
              (Lists{"0-3", "4-7"}));
    EXPECT_EQ(divided(odd, {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
                            CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE, 0}),
              (Lists{"1,3", "5,7"}));
    EXPECT_EQ(divided(odd, {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_AFFINITY_DOMAIN_L2_CACHE, 0}),
              (Lists{std::to_string(CL_INVALID_VALUE)}));
}

TEST(ThreadPlaces, ThreadsStandForTheCpusOfTheirNumberWhereTheyCan) {
    ThreadPlaces places(8, CpuSet::range(0, 8));
    EXPECT_EQ(places.claim({2, 3}), (ThreadRange{2, 2}));
    EXPECT_EQ(places.cpus_of(2), (CpuSet{2, 3}));
    EXPECT_EQ(places.cpus_of(0), CpuSet::range(0, 8));
    // A part of another set, and all: those that they have in common.
    EXPECT_EQ(places.claim({3}), (ThreadRange{3, 1}));
    EXPECT_EQ(places.cpus_of(3), CpuSet{3});
    EXPECT_EQ(places.claim(CpuSet::range(0, 8)), (ThreadRange{0, 8}));
    EXPECT_EQ(places.cpus_of(2), (CpuSet{2, 3}));
    places.release({3, 1}, {3});
    EXPECT_EQ(places.cpus_of(3), (CpuSet{2, 3}));
}

TEST(ThreadPlaces, CpusThatAreApartHaveThreadsThatNobodyElseHas) {
    ThreadPlaces places(4, {0, 2, 4, 6});
    EXPECT_EQ(places.claim({2, 4}), (ThreadRange{1, 2}));
    EXPECT_EQ(places.claim({0, 6}), std::nullopt);  // 0 and 3 are left
    EXPECT_EQ(places.claim({4, 6}), std::nullopt);  // it would share one
    places.release({1, 2}, {2, 4});
    EXPECT_EQ(places.claim({0, 6}), (ThreadRange{0, 2}));
    EXPECT_EQ(places.cpus_of(0), (CpuSet{0, 6}));
    EXPECT_EQ(places.cpus_of(1), (CpuSet{0, 6}));
    EXPECT_EQ(places.claim({2, 4}), (ThreadRange{2, 2}));
}

}  // namespace
}  // namespace heddle::opencl
