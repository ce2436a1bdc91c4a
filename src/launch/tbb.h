/* oneTBB under management: its own global_control, set from outside.
 *
 * A running loop grows with the limit, but does not shrink: a lower
 * limit applies to the next one, and until then the loop's threads share the CPUs they are bound to, which
 * TBB's work stealing suffers gladly.
 */
#ifndef HEDDLE_LAUNCH_TBB_H
#define HEDDLE_LAUNCH_TBB_H

/* A thread of TBB is about to be made: TBB is up, and from now on it is limited. Any thread may call it. */
void tbb_noticed(void);

/* Lets every oneTBB of the process run on `threads` threads at most; 0: as many as the program asked for.
 * The program's own controls stay in force: the least one counts. Does nothing
 * before tbb_noticed(): a library that is loaded need not be initialised yet. The helper thread calls it. */
void tbb_limit(unsigned threads);

/* How many threads TBB would use without us, 0 where no oneTBB is loaded. As of the last tbb_limit(). */
unsigned tbb_wanted(void);

void tbb_forget_in_child(void);

#endif
