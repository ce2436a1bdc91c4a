/* libgomp under management: its parallel and teams entries are interposed, so that a region that does not ask
 * for a number of threads gets as many as the program holds CPUs, and its waiting is made polite while cores
 * are short. */
#ifndef HEDDLE_LAUNCH_LIBGOMP_H
#define HEDDLE_LAUNCH_LIBGOMP_H

#include <stdbool.h>

/* While true, every libgomp of the process waits with a short spin and then sleeps, also in regions that are
 * running. No wait policy set at launch does this: passive waiting costs a program that is alone half its
 * speed at short barriers. The way: libgomp spins shortly once it manages more threads than CPUs, so a team
 * of sleeping threads is parked. Called by the helper thread alone. */
void libgomp_wait_politely(bool politely);

void libgomp_forget_in_child(void);

#endif
