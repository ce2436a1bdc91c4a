// A HEDDLE_* variable that there is not is told of once, by whoever comes first: a tool, or a program that
// uses the library.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/managed.hpp"

namespace heddle::test {
namespace {

const std::string kTraced = HEDDLE_BUILD_DIR "/tests/programs/traced";
const std::string kIgnored =
    "HEDDLE_TOPOLGY is not a variable of heddle and is ignored; did you mean HEDDLE_TOPOLOGY?\n";

/// What the program tells on stderr.
std::string errors_of(bench::Command command) {
    command.environment.insert(command.environment.end(),
                               {"HEDDLE_TOPOLGY=pu:4", "HEDDLE_RANK", "HEDDLE_MESH"});
    const bench::Outcome outcome = bench::run_together({&command, 1}, std::chrono::seconds(60)).front();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.errors;
}

TEST(UnknownSettings, AreToldOnceByAProgramThatUsesTheLibrary) {
    EXPECT_EQ(errors_of({{kTraced, "native", "again"}, {"HEDDLE_ARBITER=off"}, {}}), "heddle: " + kIgnored);
}

TEST(UnknownSettings, AreToldByTheToolAndNotByWhatItStarts) {
    const Managed managed;
    EXPECT_EQ(errors_of(managed.run_command({kTraced, "native"})), "heddle run: " + kIgnored);
    const std::vector<std::string> two_ranks{kHeddle, "memory", "launch", "-n", "2", "--", kTraced, "native"};
    EXPECT_EQ(errors_of({two_ranks, {"HEDDLE_ARBITER=off"}, {}}), "heddle: " + kIgnored);
}

}  // namespace
}  // namespace heddle::test
