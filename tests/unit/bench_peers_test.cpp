#include "bench/peers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

using heddle::CpuSet;
using heddle::ScratchFolder;
using heddle::bench::Command;
using heddle::bench::dress;
using heddle::bench::Host;
using heddle::bench::why_not;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

Host host_with(const CpuSet& cpus) {
    Host host;
    host.heddle = "/opt/heddle/bin/heddle";
    host.cpus = cpus;
    return host;
}

const Command kBare{{"/opt/bench/barriers", "--rounds", "5"}, {}, {}};

}  // namespace

TEST(Peers, HeddleRunsTheSameCommandAndFailsWithoutAnArbiter) {
    const Command command = dress("heddle", kBare, {0, 2}, host_with({0, 1}));
    EXPECT_THAT(command.argv, ElementsAre("/opt/heddle/bin/heddle", "run", "--require", "--",
                                          "/opt/bench/barriers", "--rounds", "5"));
    EXPECT_TRUE(command.cpus.empty());
}

TEST(Peers, SharesAreDisjointAndCoverAllCpus) {
    const Host host = host_with({0, 1, 4, 5, 9});
    const Command first = dress("static", kBare, {0, 2}, host);
    const Command second = dress("static", kBare, {1, 2}, host);
    EXPECT_EQ(first.cpus | second.cpus, host.cpus);
    EXPECT_FALSE(first.cpus.intersects(second.cpus));
    EXPECT_THAT(first.environment, Contains("OMP_NUM_THREADS=2"));
    EXPECT_THAT(second.environment, Contains("OMP_NUM_THREADS=3"));
}

TEST(Peers, OnOneCpuBothShareIt) {
    EXPECT_EQ(dress("static", kBare, {1, 2}, host_with({3})).cpus, CpuSet{3});
}

TEST(Peers, NoneInheritsTheUsersOpenMpSettings) {
    for (const auto& peer : heddle::bench::peers()) {
        if (peer.name == "active" || peer.name == "passive" || peer.name == "dlb") continue;
        EXPECT_THAT(dress(peer.name, kBare, {0, 2}, host_with({0, 1})).environment,
                    Contains("OMP_WAIT_POLICY"))
            << peer.name;
    }
    const Command passive = dress("passive", kBare, {0, 2}, host_with({0, 1}));
    EXPECT_THAT(passive.environment, Contains("OMP_WAIT_POLICY=passive"));
    EXPECT_THAT(passive.environment, Not(Contains("OMP_WAIT_POLICY")));
}

TEST(Peers, DlbSaysWhatItLacks) {
    const ScratchFolder folder;
    Host host = host_with({0, 1});
    Command bare = kBare;
    bare.argv[0] = folder.path() + "/barriers";
    EXPECT_THAT(why_not("dlb", bare, host), HasSubstr("DLB_HOME"));
    host.dlb = "/opt/dlb";
    EXPECT_THAT(why_not("dlb", bare, host), HasSubstr("there is none of barriers"));
    std::ofstream(bare.argv[0] + "_libomp") << "";
    EXPECT_EQ(why_not("dlb", bare, host), "");
    const Command command = dress("dlb", bare, {1, 2}, host);
    EXPECT_THAT(command.argv, ElementsAre("/opt/dlb/bin/dlb_run", bare.argv[0] + "_libomp", "--rounds", "5"));
    EXPECT_THAT(command.environment, Contains("LD_PRELOAD=/opt/dlb/lib/libdlb.so"));
    EXPECT_EQ(command.cpus, CpuSet{1});
}
