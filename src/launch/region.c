#define _GNU_SOURCE
#include "region.h"

#include "follow.h"
#include "link.h"
#include "process.h"

/* Regions around this thread's code, and the demand that the outermost raised. */
static __thread int depth;
static __thread int demand;

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
    if (!may_change || link_mode() == HEDDLE_MODE_MASK) return wanted;
    const unsigned cpus = asked ? follow_cpus_soon(wanted) : follow_cpus();
    return cpus == 0 ? 1 : wanted < cpus ? wanted : cpus;
}

void region_end(void) {
    if (--depth > 0 || demand == 0) return;
    link_change_demand(-demand, false);
    demand = 0;
}

void region_forget_in_child(void) {
    depth = 0;
    demand = 0;
}
