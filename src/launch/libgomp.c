#define _GNU_SOURCE
#include "libgomp.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "callers.h"
#include "export.h"
#include "follow.h"
#include "libomp.h"
#include "link.h"
#include "region.h"
#include "waiting.h"

/* Where there is none the program cannot go on: its loader knew more than we do. */
static struct library* found(struct library* library) {
    if (library != NULL) return library;
    fprintf(stderr,
            "heddle: %s: a library of it uses a libgomp that is not found, as it names none among its "
            "dependencies, or there are more than %d: run it without heddle\n",
            program_invocation_short_name, kMaxLibraries);
    abort();
}

#define CALLER() callers_at(__builtin_return_address(0))
#define LIBRARY() callers_library_at(__builtin_return_address(0))
#define REAL(library, name, type) ((type)found(library)->entries[kEntry_##name])

/* Odd: waiting is to be polite now, also in a libgomp that opens its first region later. The helper thread
 * writes. The threads of a parked team sleep on it until it leaves the value they were parked for: a region
 * that begins as politeness ends may park a team too late, for a value that is over, and that team ends. */
static _Atomic uint32_t parked_word;

struct parking {
    struct library* library;
    unsigned threads;
    uint32_t word;
};

static void sleep_until_released(void* data) {
    const struct parking* parking = data;
    waiting_begins_as_ours();
    while (atomic_load(&parked_word) == parking->word)
        syscall(SYS_futex, &parked_word, FUTEX_WAIT_PRIVATE, parking->word, NULL, NULL, 0);
    waiting_ends_as_ours();
}

static void* park(void* data) {
    struct parking parking = *(struct parking*)data;
    free(data);
    REAL(parking.library, GOMP_parallel, void (*)(void (*)(void*), void*, unsigned, unsigned))
    (sleep_until_released, &parking, parking.threads, 0);
    return NULL; /* libgomp ends the pool of a thread that ends, and stops counting it */
}

static void park_team(struct library* library, uint32_t word) {
    uint32_t last = atomic_load(&library->parked_for);
    if (library->is_libomp || (int32_t)(word - last) <= 0 ||
        !atomic_compare_exchange_strong(&library->parked_for, &last, word))
        return;
    struct parking* parking = malloc(sizeof *parking);
    /* libgomp counts the team's threads and the parked ones but one; above its CPUs it spins shortly. So many
     * are enough for the smallest team that has anybody to wait for. */
    const int enough = library->num_procs() < 2 ? 2 : library->num_procs();
    if (parking != NULL) *parking = (struct parking){library, (unsigned)enough, word};
    if (parking != NULL && waiting_start_uncounted(park, parking)) return;
    free(parking);
    atomic_compare_exchange_strong(&library->parked_for, &word, last);
}

/* Chooses the threads of a region that begins with its outlined function. `asked` is its own number, 0 for
 * none. */
static unsigned enter_region(const struct caller* caller, void (*body)(void*), bool is_loop, unsigned asked) {
    struct library* library = found(caller->library);
    if (library->is_libomp) return asked; /* its OMPT tool sees the region */
    if (asked == 1 || region_inside() || library->level() > 0) {
        region_begin_unnoticed();
        return asked;
    }
    const int wanted = asked != 0 ? (int)asked : library->max_threads();
    const int limit = library->thread_limit();
    const struct region region = {.wanted = (unsigned)(wanted < limit ? wanted : limit),
                                  .may_change = asked == 0 && !caller->has_thread_data,
                                  .body = (const void*)(size_t)body,
                                  .is_loop = is_loop};
    const unsigned threads = region_begin(&region);
    const bool has_team = threads > 1;
    if (has_team && !atomic_load_explicit(&library->has_teams, memory_order_relaxed))
        atomic_store(&library->has_teams, true);
    /* Now, or by who makes waiting polite. */
    const uint32_t word = atomic_load(&parked_word);
    if (has_team && word % 2 != 0) park_team(library, word);
    return asked != 0 || (int)threads == wanted ? asked : threads;
}

static void leave_region(const struct library* library) {
    if (!library->is_libomp) region_end();
}

/* An entry that runs the whole region: pass the chosen number of threads on in place of the one asked for. */
#define WHOLE_REGION(result, name, is_loop, parameters, types, arguments)          \
    HEDDLE_EXPORT result name parameters {                                         \
        const struct caller caller = CALLER();                                     \
        struct library* library = caller.library;                                  \
        num_threads = enter_region(&caller, fn, is_loop, num_threads);             \
        WHOLE_REGION_CALL_##result(REAL(library, name, result(*) types) arguments) \
    }
#define WHOLE_REGION_CALL_void(call) \
    call;                            \
    leave_region(library);
#define WHOLE_REGION_CALL_unsigned(call) \
    const unsigned value = call;         \
    leave_region(library);               \
    return value;

/* An entry of the older kind: the region runs on until GOMP_parallel_end. */
#define REGION_START(name, is_loop, parameters, types, arguments)      \
    HEDDLE_EXPORT void name parameters {                               \
        const struct caller caller = CALLER();                         \
        struct library* library = caller.library;                      \
        num_threads = enter_region(&caller, fn, is_loop, num_threads); \
        REAL(library, name, void(*) types) arguments;                  \
    }

#define BODY void (*fn)(void*), void *data, unsigned num_threads
#define BODY_TYPES void (*)(void*), void*, unsigned
#define LOOP BODY, long start, long end, long incr
#define LOOP_TYPES BODY_TYPES, long, long, long

WHOLE_REGION(void, GOMP_parallel, false, (BODY, unsigned flags), (BODY_TYPES, unsigned),
             (fn, data, num_threads, flags))
WHOLE_REGION(unsigned, GOMP_parallel_reductions, false, (BODY, unsigned flags), (BODY_TYPES, unsigned),
             (fn, data, num_threads, flags))
WHOLE_REGION(void, GOMP_parallel_sections, false, (BODY, unsigned count, unsigned flags),
             (BODY_TYPES, unsigned, unsigned), (fn, data, num_threads, count, flags))

#define CHUNKED_LOOP(name)                                                                           \
    WHOLE_REGION(void, name, true, (LOOP, long chunk, unsigned flags), (LOOP_TYPES, long, unsigned), \
                 (fn, data, num_threads, start, end, incr, chunk, flags))
#define PLAIN_LOOP(name)                                                           \
    WHOLE_REGION(void, name, true, (LOOP, unsigned flags), (LOOP_TYPES, unsigned), \
                 (fn, data, num_threads, start, end, incr, flags))
#define CHUNKED_LOOP_START(name)                                     \
    REGION_START(name, true, (LOOP, long chunk), (LOOP_TYPES, long), \
                 (fn, data, num_threads, start, end, incr, chunk))

CHUNKED_LOOP(GOMP_parallel_loop_static)
CHUNKED_LOOP(GOMP_parallel_loop_dynamic)
CHUNKED_LOOP(GOMP_parallel_loop_guided)
CHUNKED_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
CHUNKED_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
PLAIN_LOOP(GOMP_parallel_loop_runtime)
PLAIN_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
PLAIN_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

REGION_START(GOMP_parallel_start, false, (BODY), (BODY_TYPES), (fn, data, num_threads))
REGION_START(GOMP_parallel_sections_start, false, (BODY, unsigned count), (BODY_TYPES, unsigned),
             (fn, data, num_threads, count))
CHUNKED_LOOP_START(GOMP_parallel_loop_static_start)
CHUNKED_LOOP_START(GOMP_parallel_loop_dynamic_start)
CHUNKED_LOOP_START(GOMP_parallel_loop_guided_start)
REGION_START(GOMP_parallel_loop_runtime_start, true, (LOOP), (LOOP_TYPES),
             (fn, data, num_threads, start, end, incr))

HEDDLE_EXPORT void GOMP_parallel_end(void) {
    struct library* const library = LIBRARY();
    REAL(library, GOMP_parallel_end, void (*)(void))();
    leave_region(library);
}

/* A league of teams on the host runs its teams one after the other, each a region of its own inside. */
HEDDLE_EXPORT void GOMP_teams_reg(void (*fn)(void*), void* data, unsigned teams, unsigned thread_limit,
                                  unsigned flags) {
    REAL(LIBRARY(), GOMP_teams_reg, void (*)(void (*)(void*), void*, unsigned, unsigned, unsigned))
    (fn, data, teams, thread_limit, flags);
}

#define MEETING(result, name, parameters, types, arguments)      \
    HEDDLE_EXPORT result name parameters {                       \
        region_meets();                                          \
        return REAL(LIBRARY(), name, result(*) types) arguments; \
    }
MEETING(void, GOMP_barrier, (void), (void), ())
MEETING(void, GOMP_loop_end, (void), (void), ())
MEETING(void, GOMP_sections_end, (void), (void), ())
MEETING(void, GOMP_ordered_start, (void), (void), ())
MEETING(bool, GOMP_barrier_cancel, (void), (void), ())
MEETING(bool, GOMP_loop_end_cancel, (void), (void), ())
MEETING(bool, GOMP_sections_end_cancel, (void), (void), ())
MEETING(void, GOMP_doacross_post, (long* counts), (long*), (counts))
MEETING(void, GOMP_doacross_ull_post, (unsigned long long* counts), (unsigned long long*), (counts))

/* Of this thread: the number that OpenBLAS was told in the place of the program's; 0: it was not. Up to
 * 0.3.22 it sets that for all regions of the thread, which would keep it from growing, and the program's own.
 */
static __thread int told_instead;

/* OpenBLAS sizes each region by this call and asks for that number explicitly, so it follows its grant only
 * through it. Other programs size arrays by it once and index them by thread for ever: they get the true
 * answer. */
static int max_threads_for(struct caller caller) {
    if (caller.library == NULL) return 1;
    const int most = libomp_own_number(caller.library->max_threads());
    if (!caller.trusts_max_threads || !link_managed() || region_inside()) return most;
    const int cpus = (int)follow_cpus();
    told_instead = cpus < most ? (cpus > 0 ? cpus : 1) : 0;
    return told_instead > 0 ? told_instead : most;
}

static void set_num_threads_for(struct caller caller, int threads) {
    if (caller.library == NULL || (caller.trusts_max_threads && threads == told_instead)) return;
    if (caller.library->is_libomp) libomp_number_was_set();
    caller.library->set_num_threads(threads);
}

HEDDLE_EXPORT int omp_get_max_threads(void) {
    return max_threads_for(CALLER());
}
HEDDLE_EXPORT void omp_set_num_threads(int threads) {
    set_num_threads_for(CALLER(), threads);
}

/* By the names that Fortran's compilers give them. */
HEDDLE_EXPORT int32_t omp_get_max_threads_(void) {
    return max_threads_for(CALLER());
}
HEDDLE_EXPORT void omp_set_num_threads_(const int32_t* threads) {
    set_num_threads_for(CALLER(), *threads);
}
HEDDLE_EXPORT void omp_set_num_threads_8_(const int64_t* threads) {
    set_num_threads_for(CALLER(), *threads > INT_MAX ? INT_MAX : (int)*threads);
}

void libgomp_wait_politely(bool politely) {
    uint32_t word = atomic_load(&parked_word);
    const bool changes = politely != (word % 2 != 0);
    if (changes) word = atomic_fetch_add(&parked_word, 1) + 1;
    if (changes && !politely) syscall(SYS_futex, &parked_word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    for (unsigned i = 0; politely && i < atomic_load(&library_count); ++i)
        if (atomic_load(&libraries[i].has_teams)) park_team(&libraries[i], word);
}

void libgomp_forget_in_child(void) {
    callers_forget_in_child();
    for (unsigned i = 0; i < atomic_load(&library_count); ++i) atomic_store(&libraries[i].parked_for, 0);
}
