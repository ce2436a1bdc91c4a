/* The link of this process to the arbiter: one socket, the grant page and the client page.
 *
 * Owned by the process; opened by the constructor, closed and opened anew in a forked child. Everything here
 * may be called from any thread. When there is no arbiter every call is a cheap no-op and the program runs as
 * it would alone.
 */
#ifndef HEDDLE_LAUNCH_LINK_H
#define HEDDLE_LAUNCH_LINK_H

#include <sched.h>
#include <stdbool.h>

#include "cores/protocol.h"

/* True once an arbiter took us in; stays true when it dies: we then keep what we hold. */
bool link_managed(void);
/* The arbiter refused, and its reason was told on stderr. */
enum { LINK_REFUSED = -1 };
/* Connects and registers, within a deadline, for a program whose first thread may run there. Returns 0, an
 * errno, or LINK_REFUSED; EPROTO where who listens is no arbiter of this version. */
int link_open(const cpu_set_t* mask);
/* Forgets the link without a word: in a forked child, where the parent's connection is not touched, or where
 * the process cannot follow its grant. */
void link_forget(void);
/* Ends the connection: link_wait() finds the arbiter gone. */
void link_hang_up(void);
/* As that, and no other arbiter is looked for. For good. */
void link_renounce(void);
/* Where the calling thread, which will be the only one of a process that is managed no more, may run. */
void link_note_mask(const cpu_set_t* mask);
/* Then: if it is the program's own will, the process is to use that alone. */
void link_let_go(bool is_chosen);
enum link_news { LINK_NOTHING, LINK_CHANGED, LINK_GONE };
/* Blocks until the arbiter says something, or for `timeout_ms`; -1: without end. After LINK_CHANGED the grant
 * page may be another. */
enum link_news link_wait(int timeout_ms);
/* Blocks until an arbiter listens again, and registers with it. Returns false where that can never be. */
bool link_reopen(void);

struct link_grant {
    uint32_t epoch;
    uint32_t count;
    bool contended;
    bool leaving; /* the arbiter waits for link_send_left */
    bool parked;  /* it is others' turn: no thread is to run */
    bool turn;    /* it is ours: nobody else runs on our CPUs */
    cpu_set_t cpus;
};
/* Copies the grant under its sequence lock. False where it cannot be had whole: the arbiter died or was
 * stopped half way through writing it, and what it said before still stands. */
bool link_read_grant(struct link_grant* grant);
/* True while some program wants more CPUs than it has. One load. */
bool link_contended(void);
/* What the process could run on before anyone managed it. */
const cpu_set_t* link_allowed(void);
/* How many CPUs it can hold at most. */
unsigned link_most_cpus(void);
enum heddle_client_mode link_mode(void);
/* The socket's number, which the program must not close; -1 without one. */
int link_descriptor(void);
/* The program is about to have a file of its own by that number: the socket gets another one. */
void link_make_way(void);
/* CLOCK_MONOTONIC. */
uint64_t link_now_ns(void);

/* No thread of ours runs outside the CPUs of this epoch any more. */
void link_send_left(uint32_t epoch);

/* The demand: how many CPUs this process could use now, as it announces itself by its calls. `change` is
 * added; `soon` says that somebody should act on it at once even though it is a decrease (a long sleep
 * begins). An increase that the arbiter has not taken into account is told at once while somebody waits, and
 * where it is more than the process holds: then true. */
bool link_change_demand(int change, bool soon);
int link_announced(void);
/* Counts the program's own threads, those of no runtime that follows its grant, as they begin and end and
 * wait. Where there are several, they may wait for each other by spinning, and are announced as a gang. */
void link_change_own(int change);
/* Counts the threads of regions that run and often meet. The arbiter is told at once. */
void link_change_meeting(int change);
bool link_meets_often(void);
/* Counts the threads that may run outside the grant, for as long as they start a program. */
void link_change_widened(int change);
/* The thread with that id is bound by nobody of this process. */
void link_show_witness(int thread);
/* The helper thread saw that while `announced` was announced it was rather `demand`. Holds until something
 * else is announced. */
void link_observe(int announced, unsigned demand);
void link_observe_nothing(void);

#endif
