#define _GNU_SOURCE
#include "region.h"

#include <string.h>

#include "follow.h"
#include "link.h"
#include "process.h"

/* Regions around this thread's code, and the demand that the outermost raised. */
static __thread int depth;
static __thread int demand;
/* Of the outermost one, in the thread that opened it; its other threads have none. */
static __thread struct {
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

unsigned region_begin(unsigned wanted, bool may_change) {
    if (depth++ > 0 || wanted <= 1) return wanted;
    process_join();
    if (!link_managed()) return wanted;
    demand = (int)wanted - 1;
    const bool asked = link_change_demand(demand, false);
    team.threads = wanted;
    if (!may_change || link_mode() == HEDDLE_MODE_MASK) return wanted;
    const unsigned cpus = asked ? follow_cpus_soon(wanted) : follow_cpus();
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
    if (team.threads > 1 && depth == 1 && ++team.meetings % kMeetingsALook == 0) look_how_often();
}

void region_end(void) {
    if (--depth > 0 || demand == 0) return;
    if (team.announced) link_change_meeting(-(int)team.threads);
    memset(&team, 0, sizeof team);
    link_change_demand(-demand, false);
    demand = 0;
}

void region_forget_in_child(void) {
    depth = 0;
    demand = 0;
    memset(&team, 0, sizeof team);
}
