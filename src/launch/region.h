/* Parallel regions of OpenMP, whichever runtime opens them: the demand that they mean, and how many threads
 * they get. Each function is called by the thread that opens or closes the region. */
#ifndef HEDDLE_LAUNCH_REGION_H
#define HEDDLE_LAUNCH_REGION_H

#include <stdbool.h>

/* True inside a region that this thread opened: what is nested there is the program's own affair. */
bool region_inside(void);

/* A region begins that would run on `wanted` threads. Raises the demand and returns how many threads to give
 * it: `wanted`, or as many as the process has CPUs where that is less and `may_change` says so. Every call is
 * ended by region_end(). */
unsigned region_begin(unsigned wanted, bool may_change);
/* The same for a region that is nested or serial: it changes nothing. */
void region_begin_unnoticed(void);
void region_end(void);
/* All threads of a region wait for each other, in the one that calls this. Regions that do this often and
 * last are announced as gangs: on fewer CPUs than threads they would sleep each time. */
void region_meets(void);

void region_forget_in_child(void);

#endif
