// Masks that a program gives its threads, and programs that these start, while the launcher binds them to
// grants, under the explorer.
#include <sched.h>

#include "support/exploring.hpp"

extern "C" {
#include "launch/own_masks.h"
void affinity_here_begin(bool has_all);
void affinity_here_change(void);
void affinity_here_choose(bool is_caller, unsigned long word);
unsigned long affinity_here_mask(void);
void affinity_here_look(void);
unsigned long affinity_here_start_a_program(void);
}

namespace heddle::test {
namespace {

constexpr pid_t kThread = 1, kNeighbour = 5;  // meet in the table
constexpr unsigned long kTorn = ~0UL;
constexpr unsigned long kFirst = 1, kSecond = 2, kBoth = 3;

void note(pid_t thread, unsigned long word) {
    cpu_set_t mask{};
    mask.__bits[0] = mask.__bits[1] = word;
    (void)own_masks_note(thread, &mask);
}
/// 0: there is none.
unsigned long find(pid_t thread) {
    cpu_set_t mask;
    if (!own_masks_find(thread, &mask)) return 0;
    return mask.__bits[0] == mask.__bits[1] ? mask.__bits[0] : kTorn;
}

/// While the mask of one is changed, and another comes and goes beside it.
void a_mask_is_found_whole(Explorer& explorer) {
    own_masks_forget_all();
    note(kNeighbour, 4);
    note(kThread, 1);
    explorer.thread([] {
        own_masks_forget(kNeighbour);
        note(kThread, 2);
        note(kThread, 3);
    });
    explorer.thread([&explorer] {
        const unsigned long found = find(kThread);
        if (found < 1 || found > 3) explorer.fail(found == kTorn ? "a torn mask" : "no mask");
    });
}

void one_of_two_masks_stays(Explorer& explorer) {
    own_masks_forget_all();
    for (const unsigned long word : {1UL, 2UL}) explorer.thread([word] { note(kThread, word); });
    explorer.finally([&explorer] {
        if (find(kThread) == 0) explorer.fail("each took the other's away");
        own_masks_forget(kThread);
        if (find(kThread) != 0) explorer.fail("both stayed");
    });
}

/// The thread is where the program wants it in the end, when it has all CPUs.
void is_bound_to_its_own(Explorer& explorer, int changes, bool by_itself) {
    affinity_here_begin(changes % 2 == 0);
    explorer.thread([by_itself] { affinity_here_choose(by_itself, kSecond); });
    explorer.thread([changes] {
        for (int i = 0; i < changes; ++i) affinity_here_change();
    });
    explorer.finally([&explorer] {
        if (affinity_here_mask() != kSecond) explorer.fail("elsewhere");
    });
}
void is_bound_while_a_cpu_comes(Explorer& explorer) {
    is_bound_to_its_own(explorer, 1, true);
}
void is_bound_while_a_cpu_goes_and_comes(Explorer& explorer) {
    is_bound_to_its_own(explorer, 2, true);
}
void is_bound_by_another(Explorer& explorer) {
    is_bound_to_its_own(explorer, 2, false);
}

/// It takes its mask back while a CPU is taken.
void follows_the_grant_again(Explorer& explorer) {
    affinity_here_begin(true);
    affinity_here_choose(true, kSecond);
    explorer.thread([] { affinity_here_choose(true, kBoth); });
    explorer.thread([] { affinity_here_change(); });
    explorer.finally([&explorer] {
        if (affinity_here_mask() != kFirst) explorer.fail("not where the grant is");
    });
}

/// What a thread starts may run wherever the program may, whoever binds threads meanwhile; afterwards the
/// thread is where the grant is.
void a_program_is_started(Explorer& explorer, bool has_all, unsigned long granted_then) {
    affinity_here_begin(has_all);
    explorer.thread([&explorer] {
        if (affinity_here_start_a_program() != kBoth) explorer.fail("what was started is bound");
    });
    explorer.thread([] { affinity_here_look(); });
    explorer.finally([&explorer, granted_then] {
        if (affinity_here_mask() != granted_then) explorer.fail("not where the grant is");
    });
}
void a_program_is_started_while_a_cpu_goes(Explorer& explorer) {
    a_program_is_started(explorer, true, kFirst);
}
void a_program_is_started_while_a_cpu_comes(Explorer& explorer) {
    a_program_is_started(explorer, false, kBoth);
}

constexpr Bounds kOneSwitch{.preemptions = 1, .stale_reads = 1};
/// What shows that a place was used again, or that a grant has changed, are two words.
constexpr Bounds kTwoStale{.preemptions = 1, .stale_reads = 2};

TEST(ExploredOwnMasks, AreFoundWhole) {
    expect_holds(a_mask_is_found_whole, kTwoStale);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores})
        expect_found(a_mask_is_found_whole, fault, kTwoStale);
}
TEST(ExploredOwnMasks, OneOfTwoStays) {
    expect_holds(one_of_two_masks_stays, kOneSwitch);
    expect_found(one_of_two_masks_stays, Fault::kPlainReadModifyWrite);
}
TEST(ExploredOwnMasks, HoldWhileGrantsChange) {
    expect_holds(is_bound_while_a_cpu_comes, kTwoStale);
    expect_holds(is_bound_while_a_cpu_goes_and_comes, kOneSwitch);
    expect_holds(is_bound_by_another, kOneSwitch);
    expect_found(is_bound_while_a_cpu_comes, Fault::kNotSequential, kTwoStale);
}
TEST(ExploredWidened, WhoStartsAProgramIsLeftAloneAndThenFollows) {
    expect_holds(a_program_is_started_while_a_cpu_goes);
    for (const Fault fault :
         {Fault::kNotSequential, Fault::kPlainReadModifyWrite, Fault::kPlainCompareExchange})
        expect_found(a_program_is_started_while_a_cpu_goes, fault);
    expect_holds(a_program_is_started_while_a_cpu_comes);
    expect_found(a_program_is_started_while_a_cpu_comes, Fault::kNotSequential);
}
TEST(ExploredOwnMasks, AreTakenBackWhileTheGrantChanges) {
    expect_holds(follows_the_grant_again, kOneSwitch);
}

}  // namespace
}  // namespace heddle::test
