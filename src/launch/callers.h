/* Who calls OpenMP, and which OpenMP each of its callers would have called without us: programs have several
 * where libraries bring copies of their own. Any thread.
 */
#ifndef HEDDLE_LAUNCH_CALLERS_H
#define HEDDLE_LAUNCH_CALLERS_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libgomp_entries.h"

enum { kMaxLibraries = 64 };

/* One loaded libgomp. Programs have one; Python wheels bring copies of their own. */
struct library {
    void* entries[kEntryCount];
    int (*max_threads)(void);
    int (*num_procs)(void);
    void (*set_num_threads)(int);
    int (*thread_limit)(void);
    int (*level)(void);
    bool is_libomp;   /* it has libgomp's entries too; libomp.c manages it */
    const void* base; /* any address inside, for callers_are_libgomp */
    const void* end;
    _Atomic bool has_teams;      /* a region had more than one thread */
    _Atomic uint32_t parked_for; /* the `parked_word` that a team was last parked for */
};

/* A loaded object that calls libgomp, by its address range, and the libgomp that its calls belong to. */
struct caller {
    const char* from;
    const char* to;
    const struct link_map* object;
    struct library* library;
    bool trusts_max_threads; /* sizes nothing by omp_get_max_threads but the next region */
    bool has_thread_data;    /* its threads may hold threadprivate data: their number is its own */
};

/* Before threads exist. */
void callers_know_first(void);

/* Complete as soon as they are counted; they stay. */
extern struct library libraries[kMaxLibraries];
extern _Atomic unsigned library_count;

/* Of a call out of the object at `address`. Its library is NULL where there is none, or too many. */
struct caller callers_at(const void* address);
/* Its library alone: what a barrier can afford. */
struct library* callers_library_at(const void* address);
/* The address lies in a libgomp: its threads are counted by their regions, not one by one. */
bool callers_are_libgomp(const void* address);
/* In LLVM's OpenMP, which a call of libgomp's entries came to: it may go by the name of libgomp. */
bool callers_are_libomp_under_another_name(const void* address);
/* The same of LLVM's OpenMP and Intel's, one of which `address` lies in. */
void callers_note_libomp(const void* address);
bool callers_are_libomp(const void* address);
/* Objects were unloaded: others may come to their addresses. */
void callers_forget_unloaded(void);
/* In a forked child. */
void callers_forget_in_child(void);

#endif
