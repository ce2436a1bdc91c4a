// A policy that somebody else wrote, one file that the build was told (examples/policies/equal.cpp), decides
// in a daemon.
#include <gtest/gtest.h>

#include "cores/observer.hpp"
#include "support/daemon.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

TEST(PolicyFile, DecidesInADaemonThatItWasBuiltInto) {
    for (const auto& [policy, first, second] :
         {std::tuple{"equal", 4, 4}, std::tuple{"proportional", 5, 3}}) {
        SCOPED_TRACE(policy);
        Daemon daemon({"core:8 pu:1", {"--policy", policy}, {}, HEDDLE_BUILD_DIR "/bin/heddled_with_equal"});
        WireClient a(daemon.path()), b(daemon.path());
        ASSERT_TRUE(a.join(hello_of("wants eight", 8)));
        ASSERT_TRUE(b.join(hello_of("wants four", 4)));
        Observer observer(daemon.path());
        ArbiterSnapshot status;
        EXPECT_TRUE(becomes_true(
            [&] {
                status = observer.status();
                return status.clients.size() == 2 && status.clients[0].target == first &&
                       status.clients[1].target == second;
            },
            5s))
            << status.clients.at(0).target << " " << status.clients.at(1).target;
        EXPECT_EQ(status.policy, policy);
    }
}

TEST(PolicyFile, OneThatWasNotBuiltInIsNamedWithThoseThatWere) {
    const TemporaryFolder folder;
    Child child({HEDDLE_BUILD_DIR "/bin/heddled_with_equal", "--policy", "?"}, {}, -1,
                folder.path() + "/log");
    EXPECT_TRUE(child.ends_within(10s));
    child.reap();
    std::ifstream file(folder.path() + "/log");
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(said, "heddled: --policy: there is no policy '?'; there are: owned, proportional, equal\n");
}

}  // namespace
}  // namespace heddle::test
