// The launcher's own lock-free structures, as they are, under the explorer: the grant page that the arbiter
// writes and both libraries read, the parking of threads, libgomp's parked team, its table of callers and
// libomp's addresses.
#include "arbiter/grant_page.hpp"
#include "cores/arbiter_connection.hpp"
#include "cores/codec.hpp"
#include "support/exploring.hpp"

extern "C" {
#include "launch/park.h"
struct link_grant_here {  // struct link_grant, whose header is C
    uint32_t epoch;
    uint32_t count;
    bool contended;
    bool leaving;
    bool parked;
    cpu_set_t cpus;
};
bool link_read_grant(link_grant_here* grant);
void link_use_page(const heddle_grant_page* page);
void park_handler(void);
void park_prepare(void);
void libgomp_wait_politely(bool politely);
void libgomp_here_begin(void);
void libgomp_here_region(void);
bool libgomp_here_parked_twice(void);
void libgomp_here_forget(bool one_place_is_left);
bool libgomp_here_calls_from(unsigned object);
void libgomp_here_begin_without_teams(void);
bool libgomp_here_is_parked(void);
void libgomp_here_forget_libomps(void);
void libgomp_here_note_libomp(unsigned object);
bool libgomp_here_is_libomp(unsigned object);
}

namespace heddle::test {
namespace {

/// Grants that differ in every part that a reader looks at.
Publish grant(uint32_t number) {
    Publish publish{};
    publish.epoch = 2 * number;
    publish.cpus = number % 2 != 0 ? CpuSet{1, 70} : CpuSet{2, 130, 200};
    publish.leaving = publish.contended = number % 2 != 0;
    publish.wake = true;
    return publish;
}

std::shared_ptr<heddle_grant_page> page_with_a_grant() {
    auto page = std::make_shared<heddle_grant_page>();
    show_grant(*page, grant(1));
    return page;
}

void grant_is_read_whole(Explorer& explorer) {
    auto page = page_with_a_grant();
    explorer.thread([page] { show_grant(*page, grant(2)); });
    explorer.thread([page, &explorer] {
        const auto read = ArbiterConnection::read_grant(*page);
        if (!read) return;
        const Publish given = grant(read->epoch / 2);
        if (read->cpus != given.cpus || read->leaving != given.leaving) explorer.fail("a torn grant");
    });
}

void launcher_reads_the_grant_whole(Explorer& explorer) {
    auto page = page_with_a_grant();
    link_use_page(page.get());
    explorer.thread([page] { show_grant(*page, grant(2)); });
    explorer.thread([page, &explorer] {
        link_grant_here read;
        if (!link_read_grant(&read)) return;
        const Publish given = grant(read.epoch / 2);
        const auto count = static_cast<uint32_t>(given.cpus.count());
        if (CpuSet::from_native(&read.cpus, sizeof read.cpus) != given.cpus || read.count != count ||
            read.leaving != given.leaving || read.contended != given.contended)
            explorer.fail("a torn grant");
    });
    explorer.finally([] { link_use_page(nullptr); });
}

/// Signals come when they like; all who sleep go on when the turn comes.
void parked_threads_go_on(Explorer& explorer) {
    park_end();
    for (int i = 0; i < 2; ++i) explorer.thread([] { park_handler(); });
    explorer.thread([] { (void)park_here(); });
    explorer.thread([] {
        for (int turn = 0; turn < 2; ++turn) {
            (void)park_threads(0);
            park_end();
        }
    });
}

/// Who sat a turn out sees what it was granted for its own.
void who_goes_on_sees_the_grant(Explorer& explorer) {
    park_end();
    auto granted = std::make_shared<std::atomic<int>>(0);
    explorer.thread([granted, &explorer] {
        if (park_here() && granted->load(std::memory_order_relaxed) == 0) explorer.fail("the old grant");
    });
    explorer.thread([granted] {
        (void)park_threads(0);
        granted->store(1, std::memory_order_relaxed);
        park_end();
    });
}

/// Regions begin while waiting becomes polite and impolite again: at the end no team is parked.
void no_team_stays_parked(Explorer& explorer) {
    libgomp_here_begin();
    explorer.thread([] {
        libgomp_here_region();
        libgomp_here_region();
    });
    explorer.thread([] {
        libgomp_wait_politely(true);
        libgomp_wait_politely(false);
    });
    explorer.finally([&explorer] {
        if (libgomp_here_parked_twice()) explorer.fail("two teams are parked for one turn");
    });
}

/// The first region with a team begins as waiting becomes polite: one of the two parks a team.
void a_team_is_parked(Explorer& explorer) {
    libgomp_here_begin_without_teams();
    const int region = explorer.thread([] { libgomp_here_region(); });
    explorer.thread([region, &explorer] {
        libgomp_wait_politely(true);
        explorer.join(region);
        if (!libgomp_here_is_parked()) explorer.fail("nobody makes it wait politely");
        libgomp_wait_politely(false);
    });
    explorer.finally([&explorer] {
        if (libgomp_here_parked_twice()) explorer.fail("two teams are parked for one turn");
    });
}

/// Two that come from two libomps are noted while a third thread asks what it is in.
void libomps_are_noted(Explorer& explorer) {
    libgomp_here_forget_libomps();
    for (const unsigned libomp : {2U, 3U}) explorer.thread([libomp] { libgomp_here_note_libomp(libomp); });
    explorer.thread([&explorer] {
        if (libgomp_here_is_libomp(1)) explorer.fail("another object is taken for it");
    });
    explorer.finally([&explorer] {
        if (!libgomp_here_is_libomp(2) || !libgomp_here_is_libomp(3)) explorer.fail("one is not known");
    });
}

/// Two threads call from objects of their own and from one that they share, which are not known yet.
void callers_are_found(Explorer& explorer, bool one_place_is_left) {
    libgomp_here_forget(one_place_is_left);
    for (const unsigned own : {0U, 1U})
        explorer.thread([own, &explorer] {
            for (const unsigned object : {own, 2U, own})
                if (!libgomp_here_calls_from(object)) explorer.fail("another object's libgomp");
        });
}
void callers_of_an_empty_table(Explorer& explorer) {
    callers_are_found(explorer, false);
}
void callers_of_a_full_table(Explorer& explorer) {
    callers_are_found(explorer, true);
}

/// One switch in the middle of either shows all that a sequence lock has to stand.
constexpr Bounds kOneSwitch{.preemptions = 1, .stale_reads = 1};

TEST(ExploredGrantPage, IsReadWhole) {
    expect_holds(grant_is_read_whole, kOneSwitch);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores})
        expect_found(grant_is_read_whole, fault, kOneSwitch);
}
TEST(ExploredGrantPage, IsReadWholeByTheLauncher) {
    expect_holds(launcher_reads_the_grant_whole, kOneSwitch);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kNoFences})
        expect_found(launcher_reads_the_grant_whole, fault, kOneSwitch);
}
TEST(ExploredPark, AllGoOn) {
    park_prepare();
    expect_holds(parked_threads_go_on);
    expect_found(parked_threads_go_on, Fault::kLostWakes);
    expect_holds(who_goes_on_sees_the_grant);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kLostWakes})
        expect_found(who_goes_on_sees_the_grant, fault);
}
TEST(ExploredLibgomp, NoTeamStaysParked) {
    expect_holds(no_team_stays_parked);
    for (const Fault fault : {Fault::kLostWakes, Fault::kPlainCompareExchange})
        expect_found(no_team_stays_parked, fault);
}
TEST(ExploredLibgomp, ATeamIsParkedWhereWaitingBecomesPolite) {
    expect_holds(a_team_is_parked);
    for (const Fault fault : {Fault::kNotSequential, Fault::kPlainCompareExchange})
        expect_found(a_team_is_parked, fault);
}
TEST(ExploredLibgomp, ALibompIsKnownByItsAddresses) {
    expect_holds(libomps_are_noted);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainReadModifyWrite})
        expect_found(libomps_are_noted, fault);
}
TEST(ExploredLibgomp, EachCallerHasItsOwnLibrary) {
    expect_holds(callers_of_an_empty_table);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kNoLocks})
        expect_found(callers_of_an_empty_table, fault);
}
TEST(ExploredLibgomp, EachCallerHasItsOwnLibraryWhereTheTableIsFull) {
    expect_holds(callers_of_a_full_table);
    expect_found(callers_of_a_full_table, Fault::kNoLocks);
}

}  // namespace
}  // namespace heddle::test
