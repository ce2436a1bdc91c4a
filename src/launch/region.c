#define _GNU_SOURCE
#include "region.h"

#include <stdatomic.h>
#include <string.h>

#include "follow.h"
#include "link.h"
#include "process.h"

/* Regions around this thread's code, and the demand that the outermost raised. */
static __thread int depth;
static __thread int demand;
/* Of the outermost one, in the thread that opened it; its other threads have none. */
static __thread struct {
    const void* body;
    uint64_t began_ns;
    unsigned threads;
    unsigned meetings;
    uint64_t often_since_ns; /* 0: not yet */
    uint64_t looked_at_ns;
    bool announced;
} team;

/* As often as every 0.1 ms, for as long as a turn lasts: less would not be worth turns. */
enum { kMeetingsALook = 256, kOftenNs = 100000, kLongNs = 20000000 };

bool region_inside(void) {
    return depth > 0;
}

void region_begin_unnoticed(void) {
    ++depth;
}

/* What regions were like when they ran last, by their bodies: two times the body, and one more where its
 * threads worked for long on end. A body whose place is another's is taken for one that meets often. */
enum { kPlaces = 4096, kCoarseNs = 20000000, kApartNs = 5000000 };
static _Atomic uint64_t seen[kPlaces];

static _Atomic uint64_t* place_of(const void* body) {
    return &seen[((uintptr_t)body * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

static uint64_t coarse(const void* body) {
    return (uint64_t)(uintptr_t)body * 2 + 1;
}

static bool may_be_coarse(const struct region* region) {
    if (region->body == NULL) return false;
    const uint64_t before = atomic_load_explicit(place_of(region->body), memory_order_relaxed);
    return before == coarse(region->body) || (before == 0 && region->is_loop);
}

static void learn(const void* body, uint64_t lasted_ns, unsigned meetings) {
    _Atomic uint64_t* const place = place_of(body);
    const bool is_coarse = lasted_ns >= kCoarseNs && lasted_ns >= (uint64_t)meetings * kApartNs;
    const uint64_t before = atomic_load_explicit(place, memory_order_relaxed);
    const uint64_t now = is_coarse ? coarse(body) : coarse(body) - 1;
    if (now != before && (is_coarse || before == 0 || before == coarse(body)))
        atomic_store_explicit(place, now, memory_order_relaxed);
}

unsigned region_begin(const struct region* region) {
    const unsigned wanted = region->wanted;
    if (depth++ > 0 || wanted <= 1) return wanted;
    process_join();
    if (!link_managed()) return wanted;
    demand = (int)wanted - 1;
    const bool asked = link_change_demand(demand, false);
    team.threads = wanted;
    if (!region->may_change || link_mode() == HEDDLE_MODE_MASK) return wanted;
    team.body = region->body;
    if (team.body != NULL) team.began_ns = link_now_ns();
    const unsigned cpus = may_be_coarse(region) ? link_most_cpus()
                          : asked               ? follow_cpus_soon(wanted)
                                                : follow_cpus();
    return team.threads = cpus == 0 ? 1 : wanted < cpus ? wanted : cpus;
}

static void look_how_often(void) {
    const uint64_t now = link_now_ns();
    const uint64_t since_last = now - team.looked_at_ns;
    team.looked_at_ns = now;
    if (team.often_since_ns == 0 || since_last > (uint64_t)kMeetingsALook * kOftenNs) {
        team.often_since_ns = now;
    } else if (!team.announced && now - team.often_since_ns >= kLongNs) {
        team.announced = true;
        link_change_meeting((int)team.threads);
    }
}

void region_meets(void) {
    if (team.threads == 0 || depth != 1) return;
    if (++team.meetings % kMeetingsALook == 0 && team.threads > 1) look_how_often();
}

void region_end(void) {
    if (--depth > 0 || demand == 0) return;
    if (team.announced) link_change_meeting(-(int)team.threads);
    if (team.body != NULL) learn(team.body, link_now_ns() - team.began_ns, team.meetings);
    memset(&team, 0, sizeof team);
    link_change_demand(-demand, false);
    demand = 0;
}

void region_forget_in_child(void) {
    depth = 0;
    demand = 0;
    memset(&team, 0, sizeof team);
}
