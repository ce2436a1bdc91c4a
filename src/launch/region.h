/* Parallel regions of OpenMP, whichever runtime opens them: the demand that they mean, and how many threads
 * they get. Each function is called by the thread that opens or closes the region. */
#ifndef HEDDLE_LAUNCH_REGION_H
#define HEDDLE_LAUNCH_REGION_H

#include <stdbool.h>

/* True inside a region that this thread opened: what is nested there is the program's own affair. */
bool region_inside(void);

struct region {
    unsigned wanted; /* threads */
    bool may_change; /* their number is the runtime's choice */
    /* Names it, the same each time; NULL where nobody would say how often its threads meet. */
    const void* body;
    bool is_loop; /* and nothing else: its threads meet at its end alone */
};

/* A region begins. Raises the demand and returns how many threads to give it: as many as are wanted, or as
 * the process has CPUs where that is less and may be changed. A team that has begun does not grow, so a
 * region whose threads worked for long on end the last time, and a loop that never ran before, get as many as
 * the process may ever have CPUs: they share those that there are and spread over those that come. Every call
 * is ended by region_end(). */
unsigned region_begin(const struct region* region);
/* The same for a region that is nested or serial: it changes nothing. */
void region_begin_unnoticed(void);
void region_end(void);
/* All threads of a region wait for each other, in the one that calls this. Regions that do this often and
 * last are announced as gangs: on fewer CPUs than threads they would sleep each time. */
void region_meets(void);

void region_forget_in_child(void);

#endif
