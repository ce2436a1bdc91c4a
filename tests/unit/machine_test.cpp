#include "heddle/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "heddle/error.hpp"

using heddle::CpuSet;
using heddle::Error;
using heddle::ErrorCode;
using heddle::Machine;
using testing::AllOf;
using testing::HasSubstr;

namespace {

std::string data(const char* name) {
    return std::string(HEDDLE_TEST_DATA) + "/unit/topology/" + name;
}

void expect_bad_input(const std::string& description, const char* part) {
    try {
        (void)Machine::synthetic(description);
        FAIL() << "accepted: " << description;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kBadInput);
        EXPECT_THAT(error.what(), AllOf(HasSubstr(part), testing::Not(HasSubstr("\n"))));
    }
}

class Variable {
  public:
    explicit Variable(const std::string& value) { setenv("HEDDLE_TOPOLOGY", value.c_str(), 1); }
    ~Variable() { unsetenv("HEDDLE_TOPOLOGY"); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
};

}  // namespace

TEST(Machine, SyntheticHasThePlacesThatItsDescriptionSays) {
    const Machine machine = Machine::synthetic("numa:2 core:64 pu:2");
    EXPECT_TRUE(machine.synthetic());
    EXPECT_EQ(machine.cpus(), CpuSet::range(0, 256));
    EXPECT_EQ(machine.numa_count(), 2);
    EXPECT_EQ(machine.core_count(), 128);
    EXPECT_EQ(machine.package_count(), 1);
    EXPECT_EQ(machine.summary(), "1 package, 2 NUMA nodes, 128 cores, 256 CPUs");
    EXPECT_EQ(machine.place(129).numa, 1);
    EXPECT_EQ(machine.place(129).core, 64);
    EXPECT_EQ(machine.places().size(), 256U);
}

TEST(Machine, LevelsThatAreNotDescribedAreSimple) {
    const Machine machine = Machine::synthetic("  pu:3\t");
    EXPECT_EQ(machine.summary(), "1 package, 1 NUMA node, 3 cores, 3 CPUs");
    EXPECT_EQ(Machine::synthetic("package:2 [numa] core:4 pu:2").numa_count(), 2);
    EXPECT_EQ(Machine::synthetic("2 2 2").cpus().count(), 8);
}

TEST(Machine, PlaceOfAnUnknownCpuIsAnError) {
    const Machine machine = Machine::synthetic("core:2 pu:1");
    EXPECT_THROW((void)machine.place(2), Error);
    EXPECT_THROW((void)machine.place(-1), Error);
    EXPECT_THROW((void)machine.distance(0, 7), Error);
}

TEST(Machine, DistanceGrowsWithEachLevel) {
    const Machine machine = Machine::synthetic("package:2 numa:2 core:2 pu:2");
    EXPECT_EQ(machine.distance(0, 0), 0);
    EXPECT_EQ(machine.distance(0, 1), 1);
    EXPECT_EQ(machine.distance(0, 3), 2);
    EXPECT_EQ(machine.distance(0, 4), 3);
    EXPECT_EQ(machine.distance(8, 0), 4);
}

TEST(Machine, RefusesDescriptionsInOneLineThatNamesThePart) {
    expect_bad_input("", "names no level");
    expect_bad_input("[numa]", "names no level");
    expect_bad_input("core", "'core' is not TYPE:COUNT");
    expect_bad_input("core:x pu:2", "'core:x'");
    expect_bad_input("core:0 pu:2", "'core:0'");
    expect_bad_input("core:-3 pu:2", "'core:-3'");
    expect_bad_input("core:2 pu:2x", "'pu:2x'");
    expect_bad_input("loom:2 pu:2", "hwloc does not know");
    expect_bad_input("core:4", "the last level pu");
    expect_bad_input("pu:2 core:2", "the last level pu");
    expect_bad_input("core:2 pu:2(indexes=0,0,1,1)", "name 2 CPUs, its levels 4");
    expect_bad_input("core:2 pu:2(", "does not end with its attributes");
    expect_bad_input("cor:42(indexes=0,2(indexe517)3242", "does not end with its attributes");
    expect_bad_input("[numa core:2 pu:2", "does not end with ]");
    expect_bad_input("5000pu:1", "'5000pu:1' is not TYPE:COUNT");
    expect_bad_input("/no/such.xml",
                     "'/no/such.xml' is not TYPE:COUNT (a recorded machine is xml:/no/such.xml)");
    expect_bad_input("[] pu:2", "is not [TYPE]");
    expect_bad_input("[numa(memory=1)x] pu:2", "does not end with its attributes");
    expect_bad_input("core:2\x01 pu:2", "not printable");
}

TEST(Machine, RefusesAbsurdSizesBeforeHwlocBuildsThem) {
    expect_bad_input("core:100000000 pu:1", "'core:100000000' makes more than 4096 CPUs");
    expect_bad_input("core:99999999999999999999 pu:1", "'core:99999999999999999999'");
    expect_bad_input("package:4096 core:4096 pu:4096", "'core:4096' makes more");
    expect_bad_input("pu:2(indexes=0,4000000000)", "is not below");
    expect_bad_input("pu:2(indexes=0,40000000000000000000000)", "is not below");
    expect_bad_input(std::string(5000, ' '), "longer than");
    std::string deep = "pu:1";
    for (int i = 0; i < 100; ++i) deep = "group:1 " + deep;
    expect_bad_input(deep, "more than 64 levels");
}

TEST(Machine, ReadsARecordedMachine) {
    const Machine machine = Machine::from_xml(data("two_packages.xml"));
    EXPECT_TRUE(machine.synthetic());
    EXPECT_EQ(machine.summary(), "2 packages, 2 NUMA nodes, 4 cores, 8 CPUs");
    EXPECT_EQ(machine.distance(0, 4), 1) << "siblings are 4 apart in this recording";
}

TEST(Machine, RefusesWhatIsNotARecording) {
    EXPECT_THROW((void)Machine::from_xml("/nonexistent.xml"), Error);
    EXPECT_THROW((void)Machine::from_xml(HEDDLE_TEST_DATA), Error);
    EXPECT_THROW((void)Machine::from_xml(data("placement.txt")), Error);
}

TEST(Machine, DetectTakesTheDescribedMachineInPlaceOfTheRealOne) {
    {
        const Variable variable("core:3 pu:2");
        EXPECT_EQ(Machine::detect().cpus().count(), 6);
    }
    {
        const Variable variable("xml:" + data("two_packages.xml"));
        EXPECT_EQ(Machine::detect().cpus().count(), 8);
    }
    const Variable variable("core:oops");
    try {
        (void)Machine::detect();
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("HEDDLE_TOPOLOGY"), HasSubstr("core:oops")));
    }
}

TEST(Machine, DetectsTheRealOne) {
    const Machine machine = Machine::detect();
    EXPECT_FALSE(machine.synthetic());
    EXPECT_TRUE(machine.cpus().contains(sched_getcpu()));
    EXPECT_GE(machine.core_count(), 1);
}
