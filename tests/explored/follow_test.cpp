// Regions that wait a moment for CPUs that they have asked for, under the explorer: who is about to sleep
// sees what was granted, or is woken.
#include "support/exploring.hpp"

extern "C" {
#include "launch/follow.h"
void follow_here_begin(void);
void follow_here_grant(unsigned cpus);
}

namespace heddle::test {
namespace {

void two_regions_wait_for_cpus(Explorer& explorer) {
    follow_here_begin();
    for (const unsigned wanted : {2U, 3U})
        explorer.thread([wanted, &explorer] {
            if (follow_cpus_soon(wanted) < wanted) explorer.fail("went on with fewer");
        });
    explorer.thread([] {
        for (const unsigned cpus : {2U, 3U}) follow_here_grant(cpus);
    });
}

TEST(ExploredFollow, ARegionThatWaitsHearsOfItsCpus) {
    expect_holds(two_regions_wait_for_cpus);
    for (const Fault fault : {Fault::kNotSequential, Fault::kPlainReadModifyWrite, Fault::kLostWakes})
        expect_found(two_regions_wait_for_cpus, fault);
}

}  // namespace
}  // namespace heddle::test
